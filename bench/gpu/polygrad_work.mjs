/**
 * Polygrad's part: measures the cases of its argument (JSON) on one engine and prints a line of JSON for each, as it goes.
 *
 *   node polygrad_work.mjs ENGINE CASES
 */
import * as core from '@polygrad/core';
import { Adam, lossAndGrad } from '@polygrad/nn';
import { makeNetwork } from '../../apps/bench/dist/networks/make.js';
import { inputsOf } from '../../apps/bench/dist/work/networks.js';

const [, , name, text] = process.argv;
const { scope, tensor, rand, keep } = core;

async function makeEngine() {
  if (name === 'cpu') return (await import('@polygrad/backend-cpu')).createCpuEngine();
  if (name === 'cuda') return (await import('@polygrad/backend-cuda')).createCudaEngine();
  if (name === 'opencl') return (await import('@polygrad/backend-opencl')).createOpenClEngine();
  if (name === 'webgpu') {
    await import('@polygrad/backend-cpu');
    return (await import('@polygrad/backend-webgpu')).createWebGpuEngine();
  }
  throw new Error(`no engine ${name}`);
}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const engine = await makeEngine();
await core.setEngine(engine);
say({ device: engine.device });

const drawn = (...shape) => {
  const x = rand(shape, { key: 7 });
  core.flush();
  return x;
};
const computed = (run) => () => scope(run).dispose();

/** What a case does: `run` once, and `dispose`; `each` where a run is several uses that are timed one by one. */
const kinds = {
  copy: ({ n }) => {
    const x = drawn(n);
    return { run: computed(() => x.mul(1)) };
  },
  upload: ({ n }) => {
    const data = new Float32Array(n).fill(1);
    return { run: () => tensor(data).dispose() };
  },
  download: ({ n }) => {
    const x = drawn(n);
    return { run: () => x.data(), waits: true };
  },
  add: ({ n }) => {
    const [a, b] = [drawn(n), drawn(n)];
    return { run: computed(() => a.add(b)) };
  },
  chain: ({ n }) => {
    const [a, b] = [drawn(n), drawn(n)];
    return { run: computed(() => a.mul(b).add(a).maximum(0).mul(0.5).sub(b)) };
  },
  exp: ({ n }) => {
    const a = drawn(n);
    return { run: computed(() => a.exp()) };
  },
  sum: ({ n }) => {
    const a = drawn(n);
    return { run: computed(() => a.sum()) };
  },
  sumRows: ({ rows, columns }) => {
    const a = drawn(rows, columns);
    return { run: computed(() => a.sum(1)) };
  },
  sumColumns: ({ rows, columns }) => {
    const a = drawn(rows, columns);
    return { run: computed(() => a.sum(0)) };
  },
  softmax: ({ rows, columns }) => {
    const a = drawn(rows, columns);
    return { run: computed(() => core.softmax(a, 1)) };
  },
  layerNorm: ({ rows, columns }) => {
    const a = drawn(rows, columns);
    return { run: computed(() => core.layerNorm(a)) };
  },
  gemm: ({ m, k, n, batch }) => {
    const [a, b] = batch > 1 ? [drawn(batch, m, k), drawn(batch, k, n)] : [drawn(m, k), drawn(k, n)];
    return { run: computed(() => a.matmul(b)) };
  },
  conv: ({ batch, c, side, o, kernel, stride }) => {
    const [x, w] = [drawn(batch, c, side, side), drawn(o, c, kernel, kernel)];
    const padding = (kernel - 1) / 2;
    return { run: computed(() => core.conv2d(x, w, { stride, padding })) };
  },
  attention: ({ batch, heads, places, width }) => {
    const [q, k, v] = [1, 2, 3].map(() => drawn(batch, heads, places, width));
    return { run: computed(() => core.scaledDotProductAttention(q, k, v)) };
  },
  adam: ({ n }) => {
    const p = drawn(n);
    const optimizer = new Adam([p], { lr: 1e-3 });
    const g = drawn(n);
    return { run: () => scope(() => void optimizer.step([g.mul(1)])), dispose: () => optimizer.dispose() };
  },
  network: (one) => trained(one),
  sizes: (one) => {
    const { step } = trained(one);
    return { uses: one.lengths.map((length) => () => step(length)) };
  },
  small: () => {
    const [a, b] = [drawn(1), drawn(1)];
    return { run: computed(() => a.add(b)) };
  },
  replayed: ({ length }) => {
    const [a, b] = [drawn(1024), drawn(1024)];
    const run = computed(() => {
      let x = a;
      // Each addition a kernel of its own.
      for (let i = 0; i < length; i++) {
        const next = x.add(b);
        keep(next);
        core.flush();
        if (x !== a) x.dispose();
        x = next;
      }
      return x;
    });
    return { run, share: length };
  },
};

function trained({ spec, batch, length }) {
  const network = makeNetwork(spec);
  const optimizer = new Adam(network.model.parameters(), { lr: 1e-3 });
  const draw = inputsOf(spec, batch, length);
  const sets = new Map();
  const inputs = (own) => {
    if (!sets.has(own))
      sets.set(
        own,
        draw(batch, own, 0).map(({ data, shape }) => tensor(data, { shape })),
      );
    return sets.get(own);
  };
  const step = (own = length) => {
    const given = inputs(own);
    return scope(() => {
      const { value, grads } = lossAndGrad(network.model, () => network.loss(...given));
      optimizer.step(grads);
      return value;
    });
  };
  return {
    step,
    run: () => step().dispose(),
    dispose: () => {
      optimizer.dispose();
      network.model.dispose();
    },
  };
}

const now = () => performance.now() / 1000;

/** Seconds of a run: median and best of several samples, each long enough for the clock. */
async function measure({ run, waits, share = 1 }) {
  const sample = async (count) => {
    const start = now();
    for (let i = 0; i < count; i++) {
      const done = run();
      if (waits) await done;
    }
    await engine.idle();
    return (now() - start) / count;
  };
  // Compiling, and what is measured of tiles, is no part of it.
  await sample(1);
  await sample(2);
  let seconds = await sample(1);
  const count = Math.max(1, Math.min(1000, Math.ceil(0.1 / seconds)));
  const samples = [];
  const end = now() + 3;
  for (let i = 0; i < 7 && (i < 2 || now() < end); i++) {
    seconds = await sample(count);
    samples.push(seconds / share);
  }
  samples.sort((a, b) => a - b);
  return { median: samples[samples.length >> 1], best: samples[0] };
}

for (const one of JSON.parse(text)) {
  try {
    const made = kinds[one.kind](one);
    let found;
    if (made.uses === undefined) found = await measure(made);
    else {
      const times = [];
      for (const use of made.uses) {
        const start = now();
        const loss = use();
        await loss.data();
        loss.dispose();
        times.push(now() - start);
      }
      times.sort((a, b) => a - b);
      found = { median: times[times.length >> 1], best: times[0] };
    }
    made.dispose?.();
    say({ name: one.name, ...found });
  } catch (error) {
    say({ name: one.name, failed: String(error?.message ?? error).split('\n')[0] });
    if (error?.fatal) break;
  }
}
if (engine.stats !== undefined) say({ stats: engine.stats });
engine.dispose();
