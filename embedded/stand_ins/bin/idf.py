#!/usr/bin/env python3
# Stands in for ESP-IDF's.
import os
import subprocess
import sys
from pathlib import Path

told = sys.argv[1:]
if told[0] == "set-target":
    Path("target").write_text(told[1], encoding="utf-8")
elif told == ["build"]:
    target = Path("target").read_text(encoding="utf-8")
    more = os.environ.get("STAND_IN_CMAKE", "").split()
    subprocess.run(["cmake", "-S", ".", "-B", "build", f"-DIDF_TARGET={target}", *more], check=True)
    subprocess.run(["cmake", "--build", "build"], check=True)
else:
    sys.exit(not (told[0] == "-p" and told[2] == "flash" and Path("build").is_dir()))
