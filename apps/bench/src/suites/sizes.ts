/**
 * What sizes cost that were not met before: each case goes once through sizes drawn from a fixed seed, from the first call on. Beside its figure
 * stands a ratio: how long the first use of a size takes, by how long the next use of it takes.
 */
import { summarize } from '../harness/stats.ts';
import type { Suite, TrialCase } from '../harness/suite.ts';
import type { SizesWork } from '../work/cases.ts';
import { element } from '../work/inputs.ts';
import type { NetworkSpec } from '../work/networks.ts';
import type { TrialReply } from '../work/trial.ts';

/** Whole numbers from `low` to `high`, both included, in an order that the seed gives. */
export function drawn(seed: number, count: number, low: number, high: number): number[] {
  return Array.from({ length: count }, (_, i) => low + Math.floor(element(seed, i, 0, 1) * (high - low + 1)));
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}

function total(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

/** What a case's figure is: the mean of a use behind the first `from`, uses a second, or the whole run. */
type Figure = 'mean' | 'rate' | 'whole';

interface Form {
  readonly spec: NetworkSpec;
  readonly use?: SizesWork['use'];
  readonly varies?: SizesWork['varies'];
  readonly batch?: number;
  readonly length?: number;
  readonly sizes: readonly number[];
  readonly figure: Figure;
  /** Uses before those that are measured. */
  readonly from?: number;
  /** Every how many uses one is repeated; 0 for none. */
  readonly every?: number;
  readonly announced?: number;
  readonly compiled?: boolean;
}

/** Milliseconds after which a participant begins no further use: the rest of its case is not measured. */
const limitMs = 20_000;

function trialCase(id: string, form: Form): TrialCase {
  const { spec, use = 'train', varies = 'batch', batch = 1, length = 1, sizes, figure, from = 0, every = 0 } = form;
  const announced = form.announced === undefined ? {} : { announced: form.announced };
  const compiled = form.compiled === true ? { compiled: true } : {};
  const again = every === 0 ? [] : [...sizes.keys()].filter((at) => at >= from && (at - from) % every === every - 1);
  const [unit, value] = {
    mean: ['ms', (ns: number): number => ns / 1e6] as const,
    rate: ['steps/s', (ns: number): number => 1e9 / ns] as const,
    whole: ['s', (ns: number): number => ns / 1e9] as const,
  }[figure];
  const repeated = ({ times, again: second }: TrialReply): Record<string, number> => {
    const first = again.slice(0, second.length).map((at) => times[at]!);
    return second.length === 0 ? {} : { 'new over known': total(first) / total(second) };
  };
  return {
    id,
    unit,
    value,
    work: { kind: 'sizes', spec, use, varies, batch, length, sizes, ...announced, ...compiled, again, limitMs },
    ns: ({ make, times }) => {
      if (figure === 'whole') return times.length < sizes.length ? null : make + total(times);
      return times.length <= from ? null : total(times.slice(from)) / (times.length - from);
    },
    figures: (reply) => ({ ...repeated(reply), ...planning(reply) }),
  };
}

function planning({ plans, planningMs }: TrialReply): Record<string, number> {
  return {
    ...(plans === undefined ? {} : { 'plans made': plans }),
    ...(planningMs === undefined ? {} : { 'planning ms': planningMs }),
  };
}

/**
 * Epochs of a data set that the size of a batch does not divide, which `fit` knows before the first step. Its figure is the mean step of the first epoch, from the first call on. Beside it
 * stands what the smaller last batch adds to that epoch and to the second one, by what an epoch of full batches takes. A third
 * epoch has full ones alone. Then come sizes of the last batch that were not met, each of them twice.
 */
function lastBatch(id: string, spec: NetworkSpec, examples: number, batch: number): TrialCase {
  const full = Math.floor(examples / batch);
  const rest = examples - full * batch;
  const [even, uneven] = [Array.from({ length: full }, () => batch), [rest]];
  const others = Array.from({ length: Math.min(8, rest - 2) }, (_, i) => rest - 1 - i);
  const sizes = [...even, ...uneven, ...even, ...uneven, ...even, batch, ...others];
  const from = sizes.length - others.length;
  const made = trialCase(id, { spec, sizes, figure: 'mean', from, every: 1, announced: rest });
  return {
    ...made,
    ns: ({ times }) => (times.length <= full ? null : total(times.slice(0, full + 1)) / (full + 1)),
    figures: (reply) => {
      const { times } = reply;
      if (times.length < sizes.length) return made.figures(reply);
      const typical = summarize(times.slice(2 * full + 2, 3 * full + 3)).median;
      // The first epoch takes what it takes but for its last step: plans of full batches are none of that one's.
      const over = (epoch: readonly number[]): number => total(epoch) / (total(epoch.slice(0, full)) + typical);
      return {
        ...made.figures(reply),
        'first smaller batch over a full one': times[full]! / typical,
        'first epoch over full batches': over(times.slice(0, full + 1)),
        'second epoch over full batches': over(times.slice(full + 1, 2 * full + 2)),
      };
    },
  };
}

/** Generation with keys and values kept: the mean over all tokens, from the first on; beside it their median, which other processes disturb less. */
function cached(spec: NetworkSpec, count: number): TrialCase {
  const made = trialCase('gpt-generate-cached', {
    spec,
    use: 'generate',
    varies: 'length',
    sizes: upTo(count),
    figure: 'mean',
  });
  return {
    ...made,
    figures: (reply) => ({ ...made.figures(reply), 'median ms': summarize(reply.times).median / 1e6 }),
  };
}

const mlp: NetworkSpec = { network: 'mlp', inputs: 64, hidden: 128, outputs: 10 };
const actorCritic: NetworkSpec = { network: 'actor-critic', hidden: 128 };
const language: NetworkSpec = { network: 'gpt', layers: 4, width: 128, heads: 4, vocabulary: 256, places: 512 };
const sequences: NetworkSpec = { network: 'lstm', inputs: 32, hidden: 64, outputs: 10 };
const generation = { spec: language, use: 'infer', varies: 'length' } as const;

/** 56 lengths of episodes from 8 to 200, and which of them an update has. */
function episodes(updates: number): number[] {
  const lengths = Array.from({ length: 56 }, (_, i) => 8 + Math.round((i * 192) / 55));
  return drawn(202, updates, 0, 55).map((i) => lengths[i]!);
}

/** The dear ones last: each takes up to its limit, and time may be over. */
const full: readonly TrialCase[] = [
  trialCase('mlp', { spec: mlp, sizes: drawn(201, 120, 100, 499), figure: 'rate', from: 20, every: 1 }),
  trialCase('policy-gradient', { spec: actorCritic, sizes: episodes(200), figure: 'whole' }),
  trialCase('policy-gradient-compiled', {
    spec: actorCritic,
    sizes: episodes(600),
    compiled: true,
    figure: 'mean',
    from: 200,
  }),
  // As many examples as MNIST has: 468 batches of 128, and one of 96.
  lastBatch('last-batch', { network: 'mlp', inputs: 784, hidden: 128, outputs: 10 }, 60_000, 128),
  trialCase('lstm', {
    spec: sequences,
    varies: 'length',
    batch: 16,
    sizes: drawn(205, 60, 5, 40),
    figure: 'mean',
    from: 20,
    every: 1,
  }),
  trialCase('whole-mlp', { spec: mlp, sizes: drawn(201, 400, 100, 499), figure: 'whole' }),
  trialCase('whole-generate', { ...generation, sizes: upTo(128), figure: 'whole' }),
  cached(language, 512),
  trialCase('resnet18-infer', {
    spec: { network: 'resnet18', width: 64, side: 32 },
    use: 'infer',
    sizes: upTo(16),
    figure: 'mean',
    // The first size has a plan of its own, and the second makes that of the first class.
    from: 2,
    every: 1,
  }),
  trialCase('whole-gpt', {
    spec: language,
    varies: 'length',
    batch: 4,
    sizes: drawn(203, 40, 16, 112),
    figure: 'whole',
  }),
  trialCase('gpt-train', {
    spec: language,
    varies: 'length',
    batch: 4,
    sizes: drawn(203, 50, 16, 112),
    figure: 'mean',
    from: 20,
    every: 1,
  }),
  trialCase('gpt-generate', { ...generation, sizes: upTo(512), figure: 'mean', every: 16 }),
];

/**
 * The same cases with small networks and few sizes, of all the classes that the sizes above are of: that they work, what they ask of the planner
 * (sizes.test.ts), and no figures to compare.
 */
const quick: readonly TrialCase[] = (() => {
  // Four heads over one class of lengths have more scores than a long sum has terms.
  const small: NetworkSpec = { network: 'gpt', layers: 1, width: 16, heads: 4, vocabulary: 32, places: 128 };
  const train = { spec: small, varies: 'length', batch: 4 } as const;
  const infer = { spec: small, use: 'infer', varies: 'length' } as const;
  const dense: NetworkSpec = { network: 'mlp', inputs: 16, hidden: 24, outputs: 10 };
  return [
    trialCase('mlp', { spec: dense, sizes: drawn(201, 12, 100, 499), figure: 'rate', from: 4, every: 1 }),
    trialCase('policy-gradient', {
      spec: { network: 'actor-critic', hidden: 24 },
      sizes: episodes(24),
      figure: 'whole',
    }),
    trialCase('policy-gradient-compiled', {
      spec: { network: 'actor-critic', hidden: 24 },
      sizes: episodes(120),
      compiled: true,
      figure: 'mean',
      from: 24,
    }),
    trialCase('gpt-train', { ...train, sizes: drawn(203, 8, 16, 112), figure: 'mean', from: 3, every: 1 }),
    trialCase('gpt-generate', { ...infer, sizes: upTo(24), figure: 'mean', every: 8 }),
    trialCase('lstm', {
      spec: { ...sequences, hidden: 8 } as NetworkSpec,
      varies: 'length',
      batch: 2,
      sizes: drawn(205, 8, 5, 40),
      figure: 'mean',
      from: 1,
      every: 1,
    }),
    trialCase('whole-mlp', { spec: dense, sizes: drawn(201, 24, 100, 499), figure: 'whole' }),
    trialCase('whole-gpt', { ...train, sizes: drawn(203, 8, 16, 112), figure: 'whole' }),
    trialCase('whole-generate', { ...infer, sizes: upTo(20), figure: 'whole' }),
    cached(small, 24),
    trialCase('resnet18-infer', {
      spec: { network: 'resnet18', width: 4, side: 8 },
      use: 'infer',
      sizes: upTo(5),
      figure: 'mean',
      every: 1,
    }),
    lastBatch('last-batch', dense, 116, 32),
  ];
})();

export const sizeCases = (small: boolean): readonly TrialCase[] => (small ? quick : full);

export const sizes: Suite = {
  name: 'sizes',
  title: 'Sizes that were not met before, from the first call on; lower is better but for steps/s',
  peers: ['tfjs-wasm', 'torch', 'cpu-engine'],
  oneThread: true,
  bounded: true,
  cases: sizeCases,
  trials: sizeCases,
  goals: () => [],
};
