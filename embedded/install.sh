#!/bin/sh
# Installs the cross-compilers and emulators that `make test-embedded` needs, where they are missing. Debian and Ubuntu, as root or
# with sudo.
set -eu
missing=
need() { command -v "$1" >/dev/null || missing="$missing $2"; }
need gcc "gcc libc6-dev"
need cppcheck "cppcheck"
need frama-c "frama-c-base"
need cmake "cmake"
need cargo "cargo"
need /usr/bin/rustc "cargo rustc"
ls -d /usr/src/rustc-*/library >/dev/null 2>&1 || missing="$missing rust-src"
need arm-none-eabi-gcc "gcc-arm-none-eabi libnewlib-arm-none-eabi"
need riscv64-unknown-elf-gcc "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf"
need aarch64-linux-gnu-gcc "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
need arm-linux-gnueabihf-gcc "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross"
need riscv64-linux-gnu-gcc "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross"
need avr-gcc "gcc-avr avr-libc"
need simavr "simavr"
[ -d /usr/share/arduino/hardware/arduino/avr ] || missing="$missing arduino-core-avr"
need clang-19 "clang-19"
need ld.lld-19 "lld-19"
need node "nodejs"
[ -e /usr/include/wasm32-wasi/stdio.h ] || missing="$missing wasi-libc"
[ -e /usr/lib/llvm-19/lib/clang/19/lib/wasi ] || missing="$missing libclang-rt-19-dev-wasm32"
[ -e /usr/include/sodium.h ] || missing="$missing libsodium-dev"
need qemu-system-arm "qemu-system-arm"
need qemu-system-riscv32 "qemu-system-misc"
need qemu-aarch64 "qemu-user"
need x86_64-w64-mingw32-gcc "gcc-mingw-w64-x86-64-win32"
need wine "wine wine64"
[ -e /usr/lib/arm-none-eabi/newlib/nano.specs ] || [ -e /usr/lib/arm-none-eabi/lib/nano.specs ] || missing="$missing libnewlib-arm-none-eabi"
[ -n "$missing" ] || exit 0
sudo=
[ "$(id -u)" -eq 0 ] || sudo=sudo
$sudo apt-get update -q
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
