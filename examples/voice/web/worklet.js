// In the thread of sound: collects a hop of samples, and runs the network on them.
class Voice extends AudioWorkletProcessor {
  constructor({ processorOptions: { module } }) {
    super();
    this.c = new WebAssembly.Instance(module, {}).exports;
    this.status = this.c.start();
    this.place = 0;
    this.time = 0;
    this.heard = 0;
  }

  process([[sound]]) {
    for (const value of sound ?? []) {
      if (this.status !== 0) {
        this.port.postMessage({ status: this.status });
        return false;
      }
      const samples = new Int16Array(this.c.memory.buffer, this.c.samples(), this.c.hop());
      samples[this.place++] = Math.max(-32768, Math.min(32767, Math.round(value * 32768)));
      if (this.place < samples.length) continue;
      this.place = 0;
      this.time += samples.length / sampleRate;
      this.status = this.c.push();
      if (this.c.heard() !== this.heard) {
        this.heard = this.c.heard();
        this.port.postMessage({ heard: this.heard, time: this.time });
      }
    }
    return true;
  }
}

registerProcessor("voice", Voice);
