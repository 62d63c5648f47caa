/**
 * Polygrad as a participant, through its public functions alone. Every operation is flushed by itself, as a user's program
 * that looks at each result would have it; training steps are written as `fit` writes them.
 */
import {
  add,
  conv2d,
  flip,
  flush,
  gelu,
  getEngine,
  layerNorm,
  matmul,
  max,
  relu,
  scope,
  setEngine,
  slice,
  softmax,
  stats,
  sum,
  type Tensor,
  transpose,
} from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import { type GemmWork, isOrderWork, type LatencyWork, type LayoutWork, type Work } from '../work/cases.ts';
import { longestProbe } from '../work/expected.ts';
import type { Tools } from '../work/tools.ts';
import { input, settled } from './polygrad-input.ts';
import { orderOperation } from './polygrad-order.ts';
import { prepareNetwork, sizesSubject } from './polygrad-network.ts';
import { prepareOperation } from './polygrad-operations.ts';
import { prepareTraining } from './polygrad-training.ts';
import { type Prepared, type Runner, type RunnerOptions, Unsupported } from './runner.ts';

async function probeOf(tools: Tools, y: Tensor): Promise<number[]> {
  const values = await y.data();
  const at = values.length === 1 ? [0] : tools.probePositions(values.length);
  y.dispose();
  return at.map((position) => Number(values[position]));
}

/** Work that is one function of some operands. */
function operation(tools: Tools, operands: readonly Tensor[], compute: () => Tensor): Prepared {
  return {
    run: async (count) => {
      for (let i = 0; i < count; i++) {
        const y = compute();
        flush();
        y.dispose();
      }
      await settled();
    },
    probe: () => probeOf(tools, compute()),
    dispose: () => {
      for (const operand of operands) operand.dispose();
    },
  };
}

function gemm(tools: Tools, { m, n, k }: GemmWork): Prepared {
  const [a, b] = [input(tools, 1, -1, 1, m, k), input(tools, 2, -1, 1, k, n)];
  return operation(tools, [a, b], () => matmul(a, b));
}

function pair(tools: Tools, n: number, f: (a: Tensor, b: Tensor) => Tensor): Prepared {
  const [a, b] = [input(tools, 1, -1, 1, n), input(tools, 2, -1, 1, n)];
  return operation(tools, [a, b], () => f(a, b));
}

/** Work on a square of `n` elements; its second operand is drawn only where there is one. */
function layout(tools: Tools, { kind, n }: LayoutWork): Prepared {
  const side = Math.round(Math.sqrt(n));
  const cube = Math.round(Math.cbrt(n));
  const shape = kind === 'sum-middle' ? [cube, cube, cube] : [side, side];
  const a = kind.startsWith('sum') ? input(tools, 3, 0, 1, ...shape) : input(tools, 1, -1, 1, ...shape);
  const second = kind === 'add-row' ? [side] : kind === 'add-column' ? [side, 1] : [side, side];
  const b = kind.startsWith('add') ? input(tools, 2, -1, 1, ...second) : a;
  const half = { step: 2 };
  const compute: Record<LayoutWork['kind'], () => Tensor> = {
    'add-row': () => add(a, b),
    'add-column': () => add(a, b),
    'add-transposed': () => scope(() => add(a, transpose(b))),
    'add-strided': () => scope(() => add(slice(a, [null, half]), slice(b, [null, half]))),
    'add-flipped': () => scope(() => add(a, flip(b))),
    'sum-rows': () => sum(a, { axis: 1 }),
    'max-rows': () => max(a, { axis: 1 }),
    'sum-columns': () => sum(a, { axis: 0 }),
    'max-columns': () => max(a, { axis: 0 }),
    'sum-middle': () => sum(a, { axis: 1 }),
    softmax: () => softmax(a),
    'layer-norm': () => layerNorm(a),
    gelu: () => gelu(a),
  };
  return operation(tools, a === b ? [a] : [a, b], compute[kind]);
}

/** A chain of additions, recorded; what lies between is given back, so it is one kernel. */
function chainOf(a: Tensor, b: Tensor, length: number): Tensor {
  let x = a;
  for (let i = 0; i < length; i++) {
    const next = add(x, b);
    if (x !== a) x.dispose();
    x = next;
  }
  return x;
}

function latency(tools: Tools, { kind, n, ops }: LatencyWork): Prepared {
  const [a, b] = [input(tools, 1, -1, 1, n), input(tools, 2, -1, 1, n)];
  const base = operation(tools, [a, b], () => add(a, b));
  const probe = (): Promise<number[]> => probeOf(tools, chainOf(a, b, Math.min(ops, longestProbe)));
  const sync = getEngine().downloadSync !== undefined;
  switch (kind) {
    case 'small-add':
      return base;
    case 'round-trip':
      return {
        ...base,
        run: async (count) => {
          for (let i = 0; i < count; i++) {
            const y = add(a, b);
            if (sync) y.dataSync();
            else await y.data();
            y.dispose();
          }
        },
      };
    case 'record':
      return {
        ...base,
        probe,
        count: ops,
        // The result is never read, so the end of the scope has nothing to compute: recording is all there is.
        timed: (count) =>
          scope(() => {
            const start = performance.now();
            let x = a;
            for (let i = 0; i < count; i++) x = add(x, b);
            return (performance.now() - start) * 1e6;
          }),
      };
    case 'plan-hit':
      return {
        ...base,
        probe,
        timed: (count) => {
          let ns = 0;
          const before = stats().planMisses;
          for (let i = 0; i < count; i++) {
            const y = chainOf(a, b, ops);
            const start = performance.now();
            flush();
            ns += (performance.now() - start) * 1e6;
            y.dispose();
          }
          if (stats().planMisses - before > 1) throw new Error('plans were made anew: nothing was hit');
          return ns;
        },
      };
  }
  return kind satisfies never;
}

function prepare(tools: Tools, work: Work): Promise<Prepared> | Prepared {
  if (isOrderWork(work)) {
    const { operands, compute } = orderOperation(tools, work);
    return operation(tools, operands, compute);
  }
  switch (work.kind) {
    case 'gemm':
      return gemm(tools, work);
    case 'add':
      return pair(tools, work.n, (a, b) => add(a, b));
    case 'chain':
      return pair(tools, work.n, (a, b) => scope(() => relu(a.mul(b).add(a)).mul(0.5).sub(b)));
    case 'sum': {
      const a = input(tools, 3, 0, 1, work.n);
      return operation(tools, [a], () => sum(a));
    }
    case 'small-add':
    case 'round-trip':
    case 'record':
    case 'plan-hit':
      return latency(tools, work);
    case 'mlp':
    case 'cnn':
      return prepareTraining(tools, work);
    case 'operation':
      return prepareOperation(tools, work);
    case 'network':
      return prepareNetwork(tools, work);
    case 'sizes':
      throw new Unsupported('sizes are not repeated');
    case 'conv': {
      const { batch, channels, side, filters } = work;
      const x = input(tools, 1, -1, 1, batch, channels, side, side);
      const kernel = input(tools, 2, -1, 1, filters, channels, 3, 3);
      return operation(tools, [x, kernel], () => conv2d(x, kernel, { padding: 'same' }));
    }
    default:
      return layout(tools, work);
  }
}

async function makeEngine(name: string, threads: number): Promise<IEngine> {
  switch (name) {
    case 'cpu':
      return (await import('@polygrad/backend-cpu')).createCpuEngine({ threads });
    case 'native':
      return (await import('@polygrad/backend-native')).createNativeEngine({ threads });
    case 'webgpu':
      return (await import('@polygrad/backend-webgpu')).createWebGpuEngine();
    case 'opencl':
      return (await import('@polygrad/backend-opencl')).createOpenClEngine();
    case 'cuda':
      return (await import('@polygrad/backend-cuda')).createCudaEngine();
    case 'reference':
      return (await import('@polygrad/testing')).createReferenceEngine();
    default:
      throw new Unsupported(`no engine '${name}'`);
  }
}

export async function createRunner(options: RunnerOptions): Promise<Runner> {
  const { tools } = options;
  let engine = await setEngine(await makeEngine(options.engine, options.threads));
  return {
    version: engine.device,
    prepare: async (work) => {
      if (work.kind === 'network' || work.kind === 'operation') {
        // Its memory is counted from nothing.
        const before = engine;
        engine = await setEngine(await makeEngine(options.engine, options.threads));
        before.dispose();
      }
      return prepare(tools, work);
    },
    subject: (work) => sizesSubject(tools, work),
  };
}
