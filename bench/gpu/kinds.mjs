/** The work of each kind of case, on the current engine. */
import * as core from '@polygrad/core';
import { Adam, lossAndGrad } from '@polygrad/nn';
import { makeNetwork } from '../../apps/bench/dist/networks/make.js';
import { inputsOf } from '../../apps/bench/dist/work/networks.js';

const { scope, tensor, rand, keep } = core;

/** As programs on a card with much memory do: by default work is sent off at 512 MiB of results, which parts what could be one kernel. */
export const pendingLimits = { bytes: 4 * 2 ** 30 };

/** What the case at hand was given, to be given back after it. */
const given = [];
/** Numbers of a case, the same in every run. */
function drawn(shape, dtype = 'float32') {
  const x = keep(rand(shape, { key: 7 + given.length, dtype }));
  core.flush();
  given.push(x);
  return x;
}
/** Gives it back. */
export function giveBack() {
  for (const x of given.splice(0)) x.dispose();
}

/** Runs once and gives back what came out: a tensor or a list of them. */
const computed = (run) => () => {
  for (const made of [scope(run)].flat()) made.dispose();
};

/** What a case does: `run` once, and `dispose`; `uses` where a run is several uses that are timed one by one; `check` of what it computes. */
export const kinds = {
  copy: ({ n }) => {
    const x = drawn([n]);
    return { run: computed(() => x.mul(1.5)) };
  },
  upload: ({ n }) => {
    const data = new Float32Array(n).fill(1);
    return { run: () => tensor(data).dispose() };
  },
  download: ({ n }) => {
    const x = drawn([n]);
    return { run: () => x.data(), waits: true };
  },
  add: ({ n }) => {
    const [a, b] = [drawn([n]), drawn([n])];
    return { run: computed(() => a.add(b)) };
  },
  chain: ({ n }) => {
    const [a, b] = [drawn([n]), drawn([n])];
    return { run: computed(() => a.mul(b).add(a).maximum(0).mul(0.5).sub(b)) };
  },
  exp: ({ n }) => {
    const a = drawn([n]);
    return { run: computed(() => a.exp()) };
  },
  sum: ({ n }) => {
    const a = drawn([n]);
    // Of uniform numbers: the mean of so many is close to a half.
    const check = async () => Math.abs((await a.sum().item()) / n - 0.5) < 5 / Math.sqrt(n);
    return { run: computed(() => a.sum()), check };
  },
  sumRows: ({ rows, columns }) => {
    const a = drawn([rows, columns]);
    return { run: computed(() => a.sum(1)) };
  },
  sumColumns: ({ rows, columns }) => {
    const a = drawn([rows, columns]);
    return { run: computed(() => a.sum(0)) };
  },
  softmax: ({ rows, columns }) => {
    const a = drawn([rows, columns]);
    return { run: computed(() => core.softmax(a, 1)) };
  },
  layerNorm: ({ rows, columns }) => {
    const a = drawn([rows, columns]);
    return { run: computed(() => core.layerNorm(a)) };
  },
  gemm: ({ m, k, n, batch, dtype, tf32 }) => {
    const shape = (...sizes) => (batch > 1 ? [batch, ...sizes] : sizes);
    const [a, b] = [drawn(shape(m, k), dtype), drawn(shape(k, n), dtype)];
    const run = () => a.matmul(b);
    return { run: computed(run), check: () => isProduct(a, b, run, [m, k, n, batch], tf32) };
  },
  conv: (one) => {
    const [f, primals] = convolution(one);
    return { run: computed(() => f(...primals)) };
  },
  convBackward: (one) => {
    const [f, primals, out] = convolution(one);
    const slopes = drawn(out);
    return { run: computed(() => core.vjp(f, primals, slopes)[1]) };
  },
  attention: (one) => {
    const [f, primals] = attention(one);
    return { run: computed(() => f(...primals)) };
  },
  attentionBackward: (one) => {
    const [f, primals] = attention(one);
    const slopes = drawn(primals[0].shape, one.dtype);
    return { run: computed(() => core.vjp(f, primals, slopes).flat()) };
  },
  adam: ({ n }) => {
    const p = drawn([n]);
    const optimizer = new Adam([p], { lr: 1e-3 });
    const g = drawn([n]);
    return { run: () => scope(() => void optimizer.step([g.mul(1)])), dispose: () => optimizer.dispose() };
  },
  network: (one) => trained(one),
  profile: (one) => trained(one),
  sizes: (one) => {
    const { step, dispose } = trained(one);
    return { uses: one.lengths.map((length) => () => step(length)), dispose };
  },
  batches: (one) => {
    const w = drawn(one.layer === 'conv' ? [one.o, one.c, one.kernel, one.kernel] : [one.c, one.o]);
    const of = (x, y) => (one.layer === 'conv' ? core.conv2d(x, y, { padding: one.kernel >> 1 }) : core.matmul(x, y));
    const use = (batch) => {
      const area = one.layer === 'conv' ? [one.side, one.side] : [];
      const [x, slopes] = [one.c, one.o].map((n) => drawn([batch, n, ...area]));
      const parts = () => core.vjp(of, [x, w], slopes).flat();
      return () => scope(() => parts().reduce((sum, t) => sum.add(t.sum()), core.zeros([])));
    };
    return { known: one.known.map(use), uses: one.lengths.map(use) };
  },
  small: () => {
    const [a, b] = [drawn([1]), drawn([1])];
    return { run: computed(() => a.add(b)) };
  },
  replayed: ({ length }) => {
    const [a, b] = [drawn([1024]), drawn([1024])];
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

function convolution({ batch, c, side, o, kernel, stride }) {
  const primals = [drawn([batch, c, side, side]), drawn([o, c, kernel, kernel])];
  const padding = (kernel - 1) / 2;
  const out = Math.ceil(side / stride);
  return [(x, w) => core.conv2d(x, w, { stride, padding }), primals, [batch, o, out, out]];
}

function attention({ batch, heads, places, width, dtype, causal }) {
  const primals = [1, 2, 3].map(() => drawn([batch, heads, places, width], dtype));
  return [(q, k, v) => core.scaledDotProductAttention(q, k, v, { causal }), primals];
}

/** The same in large sizes as in the small ones that the conformance suite has: a few elements against sums in float64. */
async function isProduct(a, b, run, [m, k, n, batch], tf32) {
  const digits = { float16: 11, bfloat16: 8 }[a.dtype] ?? (tf32 ? 10 : 16);
  const flat = (t, ...sizes) => t.reshape([batch, ...sizes]);
  const y = scope(run);
  for (const at of [
    [0, 0, 0],
    [batch >> 1, m >> 1, Math.floor((2 * n) / 3)],
    [batch - 1, m - 1, n - 1],
  ]) {
    const [z, i, j] = at;
    const parts = scope(() =>
      [
        flat(a, m, k).slice([z, i]),
        flat(b, k, n).slice([z, null, j]),
        flat(y, m, n).slice([z, i, { start: j, stop: j + 1 }]),
      ].map((t) => t.cast('float32')),
    );
    const [row, column, [found]] = await Promise.all(parts.map((t) => t.data()));
    for (const part of parts) part.dispose();
    let right = 0;
    for (let s = 0; s < k; s++) right += row[s] * column[s];
    // Of numbers from 0 to 1: factors and result are rounded once, sums are of float32.
    if (!(Math.abs(found - right) <= right * 2 ** (1 - digits)))
      throw new Error(`the numbers are wrong: ${found} at ${at}, which is ${right}`);
  }
  y.dispose();
  return true;
}

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
    const taken = inputs(own);
    return scope(() => {
      const { value, grads } = lossAndGrad(network.model, () => network.loss(...taken));
      optimizer.step(grads);
      return value;
    });
  };
  return {
    step,
    run: () => step().dispose(),
    dispose: () => {
      for (const input of [...sets.values()].flat()) input.dispose();
      optimizer.dispose();
      network.model.dispose();
    },
  };
}
