/* wasi.js - runs a program for WebAssembly in Node: node wasi.js PROGRAM [COUNTS]. The folder where it runs is all of the file system
 * that the program sees. With COUNTS, the file's lines become the numbers that counters made by wasm.py hold at the end. */
"use strict";
const fs = require("node:fs");
const { WASI } = require("node:wasi");

const [program, counts] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [program], preopens: { "/": "." }, returnOnExit: true });
const imports = { wasi_snapshot_preview1: wasi.wasiImport };
const instance = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(program)), imports);
process.exitCode = wasi.start(instance);
if (counts !== undefined) {
  const numbers = ["board_count_0", "board_count_1", "board_count_2"].map((name) => instance.exports[name].value);
  fs.writeFileSync(counts, numbers.join("\n") + "\n");
}
