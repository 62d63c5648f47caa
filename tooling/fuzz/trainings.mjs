/**
 * Trainings of random networks by random optimizers: what a list of numbers means, and what the losses and parameters are after some steps.
 *
 * Everything is float64, and epsilons are large, so that results of engines that round differently stay next to each other.
 */
import * as pg from '@polygrad/core';
import * as nn from '@polygrad/nn';

/** Decisions from a list of numbers; what is not in the list is 0. */
export class Choices {
  #numbers;
  #next = 0;
  said = [];

  constructor(numbers) {
    this.#numbers = numbers;
  }

  nat(n) {
    return (this.#numbers[this.#next++] ?? 0) % n;
  }

  pick(what, list) {
    const found = list[this.nat(list.length)];
    this.said.push(`${what} ${JSON.stringify(found)}`);
    return found;
  }

  /** How many rows there are: as many as are given, or one of a list. */
  rows(what, list, given) {
    const found = this.pick(what, list);
    return given ?? found;
  }
}

const dtype = 'float64';
const sizes = [3, 1, 2, 5, 8, 4, 7, 16, 17];
const activations = {
  ReLU: nn.ReLU,
  Tanh: nn.Tanh,
  GELU: nn.GELU,
  SiLU: nn.SiLU,
  Sigmoid: nn.Sigmoid,
  ELU: nn.ELU,
  LeakyReLU: nn.LeakyReLU,
  Softplus: nn.Softplus,
  Mish: nn.Mish,
};
const losses = {
  crossEntropy: pg.crossEntropy,
  mseLoss: pg.mseLoss,
  huberLoss: pg.huberLoss,
  binaryCrossEntropyWithLogits: pg.binaryCrossEntropyWithLogits,
};
const recurrent = { LSTM: nn.LSTM, GRU: nn.GRU };

const activation = (c) => new activations[c.pick('activation', Object.keys(activations))]();

/** Numbers of -1 .. 1. */
function given(shape, salt) {
  const size = shape.reduce((a, b) => a * b, 1);
  return pg.tensor(
    Array.from({ length: size }, (_, i) => (((i * 37 + salt * 101 + ((i * i) % 13)) % 41) - 20) / 20),
    { dtype, shape },
  );
}

const classes = (rows, n, shape = [rows]) =>
  pg.tensor(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => (i * 7 + 3) % n),
    { dtype: 'int32', shape },
  );

/** A loss of the network's rows of numbers. */
function lossOf(c, forward, rows, width) {
  const kind = c.pick('loss', Object.keys(losses));
  if (kind === 'crossEntropy' && width > 1) {
    const target = classes(rows, width);
    return { target, loss: (x, y) => pg.crossEntropy(forward(x), y) };
  }
  const target = pg.scope(() => pg.abs(given([rows, width], 5)));
  const f = losses[kind === 'crossEntropy' ? 'mseLoss' : kind];
  return { target, loss: (x, y) => f(forward(x), y) };
}

function rowsNet(c, size) {
  const [rows, first, last] = [c.rows('rows', sizes, size), c.pick('inputs', sizes), c.pick('outputs', sizes)];
  const layers = [];
  let width = first;
  for (let i = c.nat(3); i > 0; i--) {
    const next = c.pick('hidden', sizes);
    layers.push(new nn.Linear(width, next, { dtype, bias: c.pick('bias', [true, false]) }), activation(c));
    width = next;
    const norm = c.pick('norm', ['none', 'layer', 'rms', 'dropout']);
    if (norm === 'layer') layers.push(new nn.LayerNorm(width, { dtype, eps: 0.1 }));
    if (norm === 'rms') layers.push(new nn.RMSNorm(width, { dtype, eps: 0.1 }));
    if (norm === 'dropout') layers.push(new nn.Dropout(0.25));
  }
  layers.push(new nn.Linear(width, last, { dtype }));
  const model = new nn.Sequential(...layers);
  return { model, inputs: given([rows, first], 1), ...lossOf(c, (x) => model.forward(x), rows, last) };
}

function imageNet(c, size) {
  const [rows, channels, side] = [
    c.rows('images', [2, 1, 3], size),
    c.pick('channels', [1, 3, 2]),
    c.pick('side', [6, 5, 8, 4]),
  ];
  const [features, last] = [c.pick('features', [4, 2, 3]), c.pick('outputs', sizes)];
  const layers = [
    new nn.Conv2d(channels, features, 3, { dtype, padding: 1, stride: c.pick('stride', [1, 2]) }),
    activation(c),
  ];
  if (c.pick('batch norm', [false, true])) layers.push(new nn.BatchNorm2d(features, { dtype, eps: 0.1 }));
  const next = c.pick('next', ['none', 'max', 'average', 'conv', 'transposed']);
  if (next === 'max') layers.push(new nn.MaxPool2d(2));
  if (next === 'average') layers.push(new nn.AvgPool2d(2));
  if (next === 'conv')
    layers.push(new nn.Conv2d(features, features, 2, { dtype, groups: c.pick('groups', [1, features]) }));
  if (next === 'transposed') layers.push(new nn.ConvTranspose2d(features, features, 2, { dtype, stride: 2 }));
  layers.push(new nn.GlobalAvgPool2d(), new nn.Linear(features, last, { dtype }));
  const model = new nn.Sequential(...layers);
  return { model, inputs: given([rows, channels, side, side], 2), ...lossOf(c, (x) => model.forward(x), rows, last) };
}

function sequenceNet(c, size) {
  const [rows, steps, width] = [
    c.rows('rows', [2, 1, 3], size),
    c.pick('steps', [3, 1, 5]),
    c.pick('width', [4, 2, 8]),
  ];
  const words = c.pick('words', [5, 2, 11]);
  const table = new nn.Embedding(words, width, { dtype });
  const kind = c.pick('over the sequence', ['LSTM', 'GRU', 'attention', 'block']);
  const both = c.pick('bidirectional', [false, true]);
  const body =
    kind in recurrent
      ? new recurrent[kind](width, 3, { dtype, bidirectional: both, numLayers: c.pick('layers', [1, 2]) })
      : kind === 'attention'
        ? new nn.MultiHeadAttention(width, 2, { dtype, causal: both })
        : new nn.TransformerBlock(width, 2, {
            dtype,
            causal: both,
            dimFeedforward: 5,
            layerNormEps: 0.1,
            normFirst: c.pick('norm first', [true, false]),
          });
  const head = new nn.Linear(body instanceof nn.LSTM || body instanceof nn.GRU ? (both ? 6 : 3) : width, words, {
    dtype,
  });
  class Net extends nn.Module {
    table = table;
    body = body;
    head = head;
    forward(x) {
      const seen = this.table.forward(x);
      const mixed =
        this.body instanceof nn.LSTM || this.body instanceof nn.GRU
          ? this.body.forward(seen).output
          : this.body.forward(seen);
      return pg.reshape(this.head.forward(mixed), [-1, words]);
    }
  }
  const model = new Net();
  return {
    model,
    inputs: classes(0, words, [rows, steps]),
    target: classes(rows * steps, words),
    loss: (x, y) => pg.crossEntropy(model.forward(x), y),
  };
}

/** The class of an optimizer, and its options. */
function optimizerOf(c) {
  const lr = c.pick('rate', [0.05, 0.5, 'schedule']);
  const rate = { lr: lr === 'schedule' ? nn.linearWarmup(2, nn.exponentialDecay(0.1, 0.5)) : lr };
  const weightDecay = c.pick('decay', [0, 0.1]);
  const plus = { ...rate, weightDecay, eps: 0.1 };
  switch (c.pick('optimizer', ['SGD', 'momentum', 'Adam', 'AdamW', 'RMSProp', 'Adagrad', 'Adadelta', 'Lion'])) {
    case 'SGD':
      return [nn.SGD, { ...rate, weightDecay }];
    case 'momentum':
      return [nn.SGD, { ...rate, weightDecay, momentum: 0.9, nesterov: c.pick('nesterov', [false, true]) }];
    case 'Adam':
      return [nn.Adam, plus];
    case 'AdamW':
      return [nn.AdamW, plus];
    case 'RMSProp': {
      const more = { centered: c.pick('centered', [false, true]), momentum: c.pick('momentum', [0, 0.5]) };
      return [nn.RMSProp, { ...plus, ...more }];
    }
    case 'Adagrad':
      return [nn.Adagrad, plus];
    case 'Adadelta':
      return [nn.Adadelta, plus];
    default:
      return [nn.Lion, { ...rate, weightDecay }];
  }
}

/** One optimizer of all parameters, or of every second parameter at another rate. */
function optimizerFor(Kind, options, parameters, groups) {
  if (groups === 1 || parameters.length === 1) return new Kind(parameters, options);
  const [even, odd] = [0, 1].map((rest) => parameters.filter((_, i) => i % 2 === rest));
  return new nn.ParameterGroups(Kind, [{ parameters: even, lr: 0.25, weightDecay: 0 }, { parameters: odd }], options);
}

/** Trains on the current engine as the numbers say, or on so many rows, and leaves nothing behind. */
async function randomTraining(numbers, size = null) {
  const c = new Choices(numbers);
  pg.seed(c.nat(1000));
  const make = [rowsNet, imageNet, sequenceNet][c.nat(3)];
  const { model, inputs, target, loss } = make(c, size);
  const values = [];
  const found = [];
  // What ends with the training. A step disposes gradients; one that does not come to that leaves nothing to what runs next either.
  const ends = [];
  let gradients = null;
  try {
    const [Kind, options] = optimizerOf(c);
    const way = c.pick('gradients', ['lossAndGrad', 'backward', 'checkpoint', 'two batches']);
    const between = c.pick('between steps', [
      'nothing',
      'reads',
      'flush',
      'idle',
      'evaluation',
      'frozen',
      'another rate',
    ]);
    const clip = c.pick('clip', ['none', 'norm', 'value']);
    const compiled = c.pick('steps', ['recorded', 'compiled']) === 'compiled';
    const optimizer = optimizerFor(Kind, options, model.parameters(), c.pick('groups', [1, 2]));
    ends.push(optimizer);
    const average = c.pick('means of weights', [false, true]) ? new nn.WeightAverage(model, { decay: 0.5 }) : null;
    const sums = c.pick('batches a step', [1, 2]) === 2 ? new nn.GradientAccumulator(2) : null;
    ends.push(...[average, sums].filter((owner) => owner !== null));
    const lessRows = c.pick('last batch', ['whole', 'smaller']) === 'smaller';
    const update = (grads) => {
      if (grads !== undefined && clip === 'norm') nn.clipGradNorm(grads, 0.5).dispose();
      if (grads !== undefined && clip === 'value') nn.clipGradValue(grads, 0.05);
      optimizer.step(grads);
      average?.update();
    };
    const train = (x, y) => {
      if (way === 'backward') {
        const value = pg.scope(() => {
          const result = loss(x, y);
          result.backward();
          return pg.detach(result);
        });
        update();
        return value;
      }
      const { value, grads } = nn.lossAndGrad(model, () => {
        if (way === 'checkpoint') return pg.checkpoint((given) => loss(given, y), x);
        return way === 'two batches' ? pg.add(loss(x, y), pg.mul(loss(x, y), 0.5)) : loss(x, y);
      });
      if (!compiled) gradients = grads;
      const ready = sums === null ? grads : sums.add(grads);
      if (ready !== null) update(ready);
      return value;
    };
    const step = compiled ? pg.compile(train) : train;
    if (compiled) ends.push(step);
    const steps = compiled ? 7 : 4;
    for (let i = 0; i < steps; i++) {
      if (lessRows && i % 4 === 3) {
        const [x, y] = [inputs, target].map((t) =>
          pg.slice(t, [{ stop: Math.ceil(inputs.shape[0] / 2) * (t.shape[0] / inputs.shape[0]) }]),
        );
        found.push(step(x, y));
        pg.dispose([x, y]);
      } else found.push(step(inputs, target));
      if (between === 'reads') await found.at(-1).data();
      if (between === 'flush') pg.flush();
      if (between === 'idle') await pg.idle();
      if (between === 'evaluation') {
        model.eval();
        found.push(pg.noGrad(() => pg.scope(() => loss(inputs, target))));
        model.train();
      }
      if (between === 'frozen' && i === steps - 3) model.parameters()[0].requiresGrad = false;
      if (between === 'another rate' && i === steps - 3) (optimizer.groups?.[0] ?? optimizer).learningRate = 0.125;
    }
    for (const t of found) values.push(...Array.from(await t.data()));
    // Where a gradient is 0 but for roundings, the step of Lion is its sign.
    if (Kind === nn.Lion) values.length = 1;
    else
      for (const t of Object.values({ ...model.stateDict(), ...prefixed(average?.stateDict() ?? {}) }))
        values.push(...Array.from(await t.data()));
    return { text: c.said.join(', '), values };
  } finally {
    for (const p of model.parameters()) p.grad?.dispose();
    for (const owner of ends) owner.dispose();
    model.dispose();
    pg.dispose([inputs, target, found, gradients]);
  }
}

const prefixed = (state) =>
  Object.fromEntries(Object.entries(state).map(([name, value]) => [`mean of ${name}`, value]));

/** The same on the current engine: as it is recorded, and op by op. */
async function bothWays(numbers) {
  const found = [];
  for (const eager of [false, true]) {
    pg.setEager(eager);
    try {
      const before = pg.memory();
      found.push(await randomTraining(numbers));
      pg.flush();
      await pg.idle();
      const after = pg.memory();
      for (const what of ['numTensors', 'numBuffers', 'bytes'])
        if (after[what] !== before[what])
          throw new Error(`${what} ${after[what]} where ${before[what]} were before: ${found.at(-1).text}`);
    } finally {
      pg.setEager(false);
    }
  }
  return found;
}

/** Throws where a training comes to something else on one of the engines, or op by op. Gives how many of its steps were replayed. */
export async function checkTraining(engines, numbers) {
  let first = null;
  let replayed = 0;
  for (const engine of engines) {
    await pg.setEngine(engine);
    const { replays } = pg.stats();
    for (const trained of await bothWays(numbers)) {
      first ??= trained;
      const bad = firstDifference(trained.values, first.values);
      if (bad >= 0)
        throw new Error(
          `number ${bad} of ${first.values.length} is ${trained.values[bad]} where ${first.values[bad]} was found before: ${trained.text}`,
        );
    }
    replayed += pg.stats().replays - replays;
  }
  return replayed;
}

/** Throws where a training with plans for classes of sizes comes to something else than with plans of its own. Gives how many were compared. */
export async function checkTrainingAtSizes(engine, numbers) {
  await pg.setEngine(engine);
  const c = new Choices(numbers.toReversed());
  const low = 2 ** c.pick('class', [2, 1, 3, 4]);
  const rows = [low + c.nat(low), low, 2 * low - 1, low + c.nat(low)];
  const train = async (mode) => {
    pg.setDynamicSizes(mode);
    pg.clearPlans();
    const found = [];
    for (const n of rows) found.push(await randomTraining(numbers, n));
    return found;
  };
  const alone = await train('never');
  const before = pg.stats().binds;
  const shared = await train('always');
  for (const [i, { values, text }] of shared.entries()) {
    const bad = firstDifference(values, alone[i].values);
    if (bad >= 0)
      throw new Error(
        `${rows[i]} rows: number ${bad} of ${values.length} is ${values[bad]} with a plan for a class of sizes and ${alone[i].values[bad]} without: ${text}`,
      );
  }
  return pg.stats().binds > before ? rows.length : 0;
}

/** Where two lists of numbers differ by more than roundings, or -1. */
function firstDifference(values, expected) {
  if (values.length !== expected.length) return Math.min(values.length, expected.length);
  return values.findIndex((x, i) => !(Math.abs(x - expected[i]) <= 1e-8 + 1e-7 * Math.abs(expected[i])));
}
