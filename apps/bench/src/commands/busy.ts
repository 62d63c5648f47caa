/**
 * `node apps/bench/dist/commands/busy.js [--busy N] [--rounds N] [--ms N] [--other FILE]`: steps of training on one thread and on two, while other
 * processes keep the machine busy.
 *
 * All variants are engines of one process and take turns of some milliseconds. `--other` is the entry of another build of `@polygrad/backend-cpu`
 * (its `dist/index.js`), measured beside this one. A turn gives its mean step in milliseconds (what a user waits) and the processor time of a step,
 * all threads together. Figures are medians and quartiles over the turns.
 */
import { spawn } from 'node:child_process';
import { loadavg } from 'node:os';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as cpu from '@polygrad/backend-cpu';
import {
  add,
  exp,
  type IEngine,
  keep,
  mean,
  mul,
  relu,
  scope,
  setEngine,
  sigmoid,
  sub,
  sum,
  type Tensor,
  tensor,
} from '@polygrad/core';
import { Adam, Linear, Module } from '@polygrad/nn';
import { optionsOf } from './usage.ts';

const models = ['mlp', 'vae'] as const;
type Model = (typeof models)[number];

/** 784 - 128 - 10, batches of 128. */
class Mlp extends Module {
  readonly first = new Linear(784, 128);
  readonly second = new Linear(128, 10);

  forward(x: Tensor): Tensor {
    const y = this.second.forward(relu(this.first.forward(x)));
    return mean(mul(y, y));
  }
}

/** 784 - 256 - 16 - 256 - 784, batches of 64: many small kernels between products of matrices. */
class Vae extends Module {
  readonly down = new Linear(784, 256);
  readonly middle = new Linear(256, 16);
  readonly spread = new Linear(256, 16);
  readonly up = new Linear(16, 256);
  readonly out = new Linear(256, 784);

  forward(x: Tensor): Tensor {
    const h = relu(this.down.forward(x));
    const [mu, logVariance] = [this.middle.forward(h), this.spread.forward(h)];
    const z = add(mu, mul(exp(mul(logVariance, 0.5)), 0.1));
    const y = sigmoid(this.out.forward(relu(this.up.forward(z))));
    const wrong = sub(y, x);
    const apart = sub(add(mul(mu, mu), exp(logVariance)), add(logVariance, 1));
    return add(mean(mul(wrong, wrong)), mul(sum(apart), 1e-4));
  }
}

interface Measured {
  readonly step: number;
  readonly processor: number;
}

/** An engine with a network on it. */
class Variant {
  readonly name: string;
  readonly found: Measured[] = [];
  readonly #engine: IEngine;
  readonly #model: Model;
  #step: (() => Promise<void>) | null = null;

  constructor(name: string, engine: IEngine, model: Model) {
    this.name = name;
    this.#engine = engine;
    this.#model = model;
  }

  /** Steps for so many milliseconds, on average. */
  async turn(ms: number): Promise<Measured> {
    await setEngine(this.#engine);
    this.#step ??= trainer(this.#model);
    const before = process.cpuUsage();
    const start = performance.now();
    let steps = 0;
    for (; performance.now() - start < ms; steps++) await this.#step();
    const step = (performance.now() - start) / steps;
    const { user, system } = process.cpuUsage(before);
    return { step, processor: (user + system) / 1000 / steps };
  }
}

/** A step of training on the current engine; the loss is read every tenth time. */
function trainer(model: Model): () => Promise<void> {
  const net = model === 'mlp' ? new Mlp() : new Vae();
  const optimizer = new Adam(net.parameters(), { lr: 1e-3 });
  const rows = model === 'mlp' ? 128 : 64;
  const pixels = Float32Array.from({ length: rows * 784 }, (_, i) => ((i * 7919) % 256) / 256);
  const x = keep(tensor(pixels, { shape: [rows, 784] }));
  let steps = 0;
  return async () => {
    const loss = scope(() => {
      const value = net.forward(x);
      value.backward();
      optimizer.step();
      optimizer.zeroGrad();
      return value;
    });
    if (++steps % 10 === 0) await loss.data();
    loss.dispose();
  };
}

/** Values at a quarter, a half and three quarters. */
function quartiles(list: readonly number[]): readonly string[] {
  const sorted = [...list].sort((a, b) => a - b);
  return [1, 2, 3].map((i) => sorted[Math.floor((i * sorted.length) / 4)]!.toFixed(2));
}

const text = { type: 'string' } as const;
const values = optionsOf(import.meta.url, { busy: text, rounds: text, ms: text, other: text });
const [busy, rounds, ms] = [Number(values.busy ?? 2), Number(values.rounds ?? 25), Number(values.ms ?? 1000)];
const builds: [string, typeof cpu][] = [['this', cpu]];
if (values.other !== undefined)
  builds.unshift(['other', (await import(pathToFileURL(resolve(values.other)).href)) as typeof cpu]);
const others = Array.from({ length: busy }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
try {
  console.log(`${busy} busy processes beside it, ${rounds} turns of ${ms} ms each`);
  console.log('model  build, threads   ms a step (quartiles)        processor ms a step');
  for (const model of models) {
    const variants = builds.flatMap(([build, { createCpuEngine }]) =>
      [1, 2].map((threads) => new Variant(`${build}, ${threads}`, createCpuEngine({ threads }), model)),
    );
    for (const variant of variants) await variant.turn(1500);
    for (let round = 0; round < rounds; round++)
      for (const variant of variants) variant.found.push(await variant.turn(ms));
    for (const { name, found } of variants) {
      const [low, middle, high] = quartiles(found.map(({ step }) => step));
      const [, processor] = quartiles(found.map((f) => f.processor));
      console.log(`${model.padEnd(6)} ${name.padEnd(16)} ${`${middle} (${low}, ${high})`.padEnd(28)} ${processor}`);
    }
  }
  console.log(`load at the end: ${loadavg()[0]?.toFixed(1)}`);
} finally {
  for (const child of others) child.kill();
}
