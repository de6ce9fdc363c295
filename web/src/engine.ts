import type { Answers, Fault, Question } from "./protocol";
import SimulatorWorker from "./worker?worker&inline";

/** What the program refuses, in its own words. */
export class Refused extends Error {
  constructor(readonly fault: Fault) {
    super(fault.text);
  }
}

/** A question that nobody waits for any more. */
export class Cancelled extends Error {}

interface Job {
  id: number;
  question: Blob | string;
  rank: number;
  done(answer: string): void;
  failed(error: Error): void;
}

interface Seat {
  worker: Worker;
  job?: Job;
  since: number;
}

/** So long a question that nobody waits for any more may go on; a new worker takes about as long. */
const PATIENCE_MS = 60;

/** As many simulators as the machine has cores, and the questions that wait for them. */
export class Engine {
  private seats: Seat[] = [];
  private waiting: Job[] = [];
  private next = 1;
  private module?: WebAssembly.Module;

  constructor(readonly size = Math.max(2, Math.min(16, navigator.hardwareConcurrency || 2))) {}

  /** Compiles the simulator, off the page's thread, in a worker that ends by itself. */
  async start(base64: string): Promise<void> {
    const worker = new SimulatorWorker();
    this.module = await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => (data.module ? resolve(data.module) : reject(new Error(data.failed)));
      worker.onerror = (event) => reject(new Error(event.message || "no worker can be started here"));
      worker.postMessage({ id: 0, compile: base64 });
    });
    while (this.seats.length < this.size) this.seats.push(this.seat());
    this.work();
  }

  private seat(): Seat {
    const seat: Seat = { worker: new SimulatorWorker(), since: 0 };
    seat.worker.postMessage({ id: 0, module: this.module });
    seat.worker.onmessage = ({ data }) => {
      const job = seat.job;
      if (!job || job.id !== data.id) return;
      seat.job = undefined;
      this.work();
      if (data.failed) job.failed(new Error(data.failed));
      else job.done(data.answer);
    };
    seat.worker.onerror = (event) => {
      const job = seat.job;
      this.replace(seat);
      job?.failed(new Error(event.message || "a worker ended"));
    };
    return seat;
  }

  private replace(seat: Seat): void {
    seat.worker.terminate();
    this.seats[this.seats.indexOf(seat)] = this.seat();
    this.work();
  }

  /** The answer, as text. Lower ranks go first; `signal` cancels; `bytes` follow the question. */
  asText(question: Question, rank: number, signal?: AbortSignal, bytes?: BlobPart[]): Promise<string> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(new Cancelled());
      const job: Job = { id: this.next++, question: bytes ? new Blob([`${JSON.stringify(question)}\n`, ...bytes]) : JSON.stringify(question), rank, done: resolve, failed: reject };
      const at = this.waiting.findIndex((other) => other.rank > rank);
      this.waiting.splice(at < 0 ? this.waiting.length : at, 0, job);
      signal?.addEventListener("abort", () => this.cancel(job), { once: true });
      this.work();
    });
  }

  async ask<Q extends Question>(question: Q, rank: number, signal?: AbortSignal, bytes?: BlobPart[]): Promise<Answers[Q["ask"]]> {
    const answer = JSON.parse(await this.asText(question, rank, signal, bytes));
    if (answer && typeof answer === "object" && "error" in answer) throw new Refused(answer.error);
    return answer;
  }

  private cancel(job: Job): void {
    const at = this.waiting.indexOf(job);
    if (at >= 0) this.waiting.splice(at, 1);
    const seat = this.seats.find((seat) => seat.job === job);
    if (seat) {
      const left = PATIENCE_MS - (performance.now() - seat.since);
      if (left <= 0) this.replace(seat);
      else setTimeout(() => seat.job === job && this.replace(seat), left);
    }
    job.failed(new Cancelled());
  }

  private work(): void {
    for (const seat of this.seats) {
      if (seat.job) continue;
      const job = this.waiting.shift();
      if (!job) return;
      seat.job = job;
      seat.since = performance.now();
      seat.worker.postMessage({ id: job.id, question: job.question });
    }
  }
}
