/**
 * What people see of objects that the library hands out: JSON and Node's console show each of them in a few lines.
 *
 * Every name of every entry is here: what makes an object of it, or that it gives none of the library's own.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as autoDetect from '@polygrad/auto-detect';
import * as backendCpu from '@polygrad/backend-cpu';
import * as backendCuda from '@polygrad/backend-cuda';
import * as backendNative from '@polygrad/backend-native';
import * as backendOpenCl from '@polygrad/backend-opencl';
import * as backendWebGpu from '@polygrad/backend-webgpu';
import * as conformance from '@polygrad/conformance';
import * as core from '@polygrad/core';
import * as engines from '@polygrad/core/engine';
import * as kernels from '@polygrad/core/kernel';
import * as testing from '@polygrad/testing';
import * as data from '@polygrad/data';
import * as dataNode from '@polygrad/data/node';
import * as emitC from '@polygrad/emit-c';
import * as emitPtx from '@polygrad/emit-ptx';
import * as emitMachine from '@polygrad/emit-machine';
import * as nn from '@polygrad/nn';
import * as numbers from '@polygrad/numbers';
import { publicOperations } from './operations/sources.mjs';

const entries = {
  autoDetect,
  backendCpu,
  backendCuda,
  backendNative,
  backendOpenCl,
  backendWebGpu,
  conformance,
  core,
  engines,
  kernels,
  testing,
  data,
  dataNode,
  emitC,
  emitPtx,
  emitMachine,
  nn,
  numbers,
};

/** Functions that give nothing, tensors, text, numbers, functions, plain lists of names, or what they were given. */
const plain = new Set(
  [
    'announce AutoDetectAndConfigureGpu formatReport isFinite isNaN maxThreads listOpenClDevices openClNativeOps wgslNativeOps ptxNativeOps ptxCaps capabilityFor leastCapability defaultTolerances',
    'faultKinds listCudaDevices autocast writeTrace calibrate to',
    'runConformance checkWeak checkpoint clearPlans compile customGradient detach dispose floatFor flush formatArray fromTensor grad gradCheck',
    'grads hessian hostEffect hostNumber hostValue hvp idle isRehearsing isTensor jacobian jvp keep listBackends noGrad onLost onRollback printGraph promoteOrNull',
    'promoteTypes protect registerBackend registerState scan scope setDynamicSizes setEager setEngine setLogger setPendingLimits setRecovery showShape throttle',
    'isUniform randomGroups randomKey seed setRandomState splitKey toTensor traceOrigins unprotect valueAndGrad valueAndGradBy verifyGraph holdFlushes lossGradients vjp vmap uploaded fault told warmup whileLoop checkFields checkNames numberFrom oneOf',
    'findRuns isGather lanesOfPart pickColumn refuseNames showAs showCaps showEngine showKernel shown BASE_OPS computesAll computesIn highOf idOf interpret evaluateNest linearOf lowOf printLoopKernel',
    'printNode printProgram printTransforms findRareSides operandsOf unrollFactor sameCode verifyLoopKernel verifyProgram verifyShared castCases comparePrograms everyNth groupCases operationCases',
    'programDifference runProgramCases threadCases withoutDenormals wrongCalls encodeIdx encodeNpy encodeNpz encodeSafetensors encodeTorch isDataError',
    'forwardWithIndices removeSpectralNorm removeWeightNorm spectralNorm weightNorm ctcLoss forwardHook forwardPreHook clipGradNorms chainedRates cosineRestarts',
    'cyclicMomentum oneCycleMomentum cyclicRate heldRate linearRate sequentialRates layerRates',
    'pixelStatistics readWhole sha256 verifySha256 accuracy buffer clipGradNorm clipGradValue constantInit constantRate',
    'cosineDecay epochLine exponentialDecay fanInUniform fansOf gainOf isModule kaimingNormal kaimingUniform multiStepDecay normalInit',
    'oneCycle onesInit orthogonalInit truncNormalInit parameter polynomialDecay progress roleOf snapshot stepDecay uniformInit xavierNormal xavierUniform zerosInit',
    'confusionMatrix f1Score meanIoU precision recall topKAccuracy auc perplexity meanAbsoluteError meanSquaredError r2Score',
    'cutout mixup randomAffine randomCrop randomFlip classWeights rateMonitor',
    'csvFile jsonLinesFile readCsv readJsonLines parseJsonLines encodePng imageFolder tensorBoard workerPool',
    'getRandomState encodeCheckpoint restoreCheckpoint checkpoints loadModel saveModel csvLog jsonLinesLog writeWhole',
    'earlyStopping evaluate fit loadIdxFolder compareEngines allClose browserStore cpuEngine decompose knownBackends lossAndGrad',
    'linearWarmup torchNames subset shuffledIndices evaluateSpecial specialValues edgeFloats extendExpect tensorMatchers',
    'callable noting rightCalls callDifference callTable callText changedCalls hostCall outcomeOf performed refusalComplaint',
    'functionalCall withStandIns checkAttached HostileError hostileArguments optionsAt strangeOptions keepRounding blocksOf endsOf withSources',
  ].flatMap((names) => names.split(' ')),
);

/** Plain data of the user's size: arrays by name, which programs read. */
const data_ = new Set(
  [
    'decodeCheckpoint decodeNpy decodeNpz decodeSafetensors decodeTorch hostState parseIdx readIdxHeader',
    'decodeImage resizeImage trainBpe CharTokenizer Normalizer fitNormalizer FeatureEncoder fitFeatures',
  ].flatMap((names) => names.split(' ')),
);

const host = (dtype, shape, values) => ({ dtype, shape, data: values });
const dataset = () => data.memoryDataset({ x: { array: host('float32', [20_000, 3], new Float32Array(60_000)) } });
const images = () => [
  host('uint8', [1000, 28, 28], new Uint8Array(784_000)),
  host('uint8', [1000], new Uint8Array(1000)),
];
const parameters = () => Array.from({ length: 300 }, () => core.ones([2]));
const { program } = testing.randomProgram(3);
const increment = () => {
  const p = new kernels.ProgramBuilder();
  const [x, y] = [p.e.param(0, 'float32', 'read', 4), p.e.param(1, 'float32', 'write', 4)];
  p.loop(4, (i) => p.store(y, i, p.e.add(p.load(x, i), p.e.constant('float32', 1))));
  return p.build({ name: 'increment' });
};
const machine = { isa: 'x64-v3', vectorBytes: 32, sharedBytes: 65536, scalarOffset: 8192 };
/** An engine where this machine has one. */
const nativeEngine = async () => {
  const { score } = await backendNative.nativeProvider.probe();
  return score > 0 ? backendNative.createNativeEngine({ threads: 1 }) : null;
};
const nest = () => {
  const e = new kernels.Exprs();
  return e.add(e.mul(e.scalar(0, 'int32'), 2), 3);
};
/** Something computed in 60 steps of which each uses the one before twice: a tree of 2^60 nodes. */
const deep = () => {
  let t = core.ones([4]);
  for (let i = 0; i < 60; i++) t = core.add(t, core.sin(t));
  return t;
};
const text = (code) => {
  try {
    code();
  } catch (error) {
    return error;
  }
  throw new Error('this should have thrown');
};
const step = () => core.softmax(core.matmul(core.ones([64, 64]), core.sin(core.ones([64, 64]))), 1);

/** An object by the name that gives it, of a size that real programs have. */
const makers = {
  // core/kernel
  usesOf: () => kernels.usesOf(program.body, ({ src }) => src),
  // core
  tensor: () => core.ones([200, 200]),
  'tensor, deep': deep,
  'node of a tensor': () => deep().node,
  tensors: () => [core.ones([2]), core.ones([2])],
  GradientTape: () => new core.GradientTape({ persistent: true }),
  NumberTensor: () => numbers.numberFull([100, 100], 10n ** 30n, numbers.bigintType),
  numberTensor: () =>
    numbers.numberTensor(
      [
        [1n, 2n],
        [3n, 4n],
      ],
      numbers.bigintType,
    ),
  numberEye: () => numbers.numberEye(3, numbers.bigintType),
  numberFull: () => numbers.numberFull([2], 7n, numbers.bigintType),
  concatNumbers: () =>
    numbers.concatNumbers([
      numbers.numberTensor([1n], numbers.bigintType),
      numbers.numberTensor([2n], numbers.bigintType),
    ]),
  stackNumbers: () =>
    numbers.stackNumbers([
      numbers.numberTensor([1n], numbers.bigintType),
      numbers.numberTensor([2n], numbers.bigintType),
    ]),
  bigintType: () => numbers.bigintType,
  booleanType: () => numbers.booleanType,
  numberType: () => numbers.numberType,
  decimalType: () => numbers.bigintType,
  defineNumberType: () => numbers.numberType,
  getBackend: () => core.getBackend('cpu'),
  getEngine: () => core.getEngine(),
  defaultStore: () => core.defaultStore(),
  diskStore: () => core.diskStore('/nowhere'),
  memoryStore: () => core.memoryStore(),
  memory: () => core.memory(),
  stats: () => core.stats(),
  profile: () => core.profile(step),
  'profile with texts': () => core.profile(step, { sources: true }),
  'kernels of a profile': async () => (await core.profile(step)).kernels,
  'program of a profile': async () => (await core.profile(step)).kernels.at(-1).program,
  tune: () => core.tune(engine, { budget: 1 }),
  // kernel and engine
  Exprs: () => new kernels.Exprs(),
  ProgramBuilder: () => new kernels.ProgramBuilder(),
  uniqueNode: nest,
  packProgram: () => kernels.packProgram(program),
  unpackProgram: () => kernels.unpackProgram(kernels.packProgram(program)),
  legalize: () => kernels.legalize(program, testing.createNullEngine().caps),
  linearize: () => program,
  optimize: () => program,
  randomProgram: () => testing.randomProgram(3).program,
  laneProgram: () => {
    const make = (b, [x]) => b.e.mul(x, x);
    return testing.laneProgram({ name: 'squares', inputs: ['float32'], out: 'float32', count: 8, lanes: 4, make });
  },
  libraryPrograms: () => [program],
  caps: () => core.getEngine().caps,
  kernel: () => core.getEngine().compile([increment()])[0],
  'engine buffer': () => core.getEngine().alloc(1 << 20),
  uncalled: () => testing.uncalled,
  untold: () => testing.untold,
  createNullEngine: () => testing.createNullEngine(),
  createReferenceEngine: () => testing.createReferenceEngine(),
  createWrongEngine: () => testing.createWrongEngine(testing.createReferenceEngine(), 0),
  createFaultyEngine: () => testing.createFaultyEngine(testing.createReferenceEngine()),
  'caps of the reference': () => testing.createReferenceEngine().caps,
  'kernel of the reference': () => testing.createReferenceEngine().compile([program])[0],
  CpuEngine: () => core.getEngine(),
  createCpuEngine: () => core.getEngine(),
  cpuProvider: () => backendCpu.cpuProvider,
  webgpuProvider: () => backendWebGpu.webgpuProvider,
  cudaProvider: () => backendCuda.cudaProvider,
  createCudaEngine: () => (backendCuda.listCudaDevices().length > 0 ? backendCuda.createCudaEngine() : null),
  openClProvider: () => backendOpenCl.openClProvider,
  nativeProvider: () => backendNative.nativeProvider,
  NativeEngine: () => nativeEngine(),
  createNativeEngine: () => nativeEngine(),
  createWebGpuEngine: () => backendWebGpu.createWebGpuEngine().catch(() => null),
  createOpenClEngine: () => (backendOpenCl.listOpenClDevices().length > 0 ? backendOpenCl.createOpenClEngine() : null),
  autoDetectAndConfigureGpu: () => autoDetect.autoDetectAndConfigureGpu({ only: 'cpu' }),
  printWgsl: () => ({ ...emitC.printWgsl(increment()), source: '' }),
  printOpenCl: () => ({ ...emitC.printOpenCl(increment()), source: '' }),
  emitPtx: () => ({ ...emitPtx.emitPtx(increment(), { computeCapability: 80, isa: '7.0' }), text: '' }),
  emitMachineCode: () => ({ ...emitMachine.emitMachineCode(increment(), machine), bytes: null }),
  KVCache: () => new nn.KVCache(),
  ExecutionContext: () => new core.ExecutionContext({ policy: 'costBased' }),
  AdaptiveThresholds: () => new core.AdaptiveThresholds(),
  Formula: () => new core.Formula(([x]) => [x.mul(x).add(1)]),
  explainPlacement: () =>
    new core.ExecutionContext({ policy: 'costBased' }).run(() => core.explainPlacement(() => core.ones([2]).add(1))),
  // data
  RandomStream: () => new data.RandomStream(1),
  memoryDataset: dataset,
  Dataset: () => data.Dataset.from(dataset()).shuffle().batch(32),
  tokenWindows: () => data.tokenWindows(new Int32Array(100_000), { length: 10 }),
  csvRows: () => data.csvRows(() => ['x\n1\n']),
  jsonLines: () => data.jsonLines(() => ['1\n']),
  parseCsv: () => data.parseCsv(`x,y\n${'1,a\n'.repeat(5000)}`),
  DataFrame: () => data.DataFrame.fromRows(Array.from({ length: 5000 }, (_, x) => ({ x }))),
  loadTokenizer: () => data.loadTokenizer(data.trainBpe('a text', { vocabSize: 256 })),
  Tokenizer: () => data.loadTokenizer(data.trainBpe('a text', { vocabSize: 256 })),
  EventWriter: () => dataNode.EventWriter.open(mkdtempSync(join(tmpdir(), 'polygrad-shown-'))),
  batches: () => data.batches(dataset(), { batchSize: 32, shuffle: true }),
  'an epoch of batches': () => data.batches(dataset(), { batchSize: 32 }).epoch(0),
  imageDataset: () => data.imageDataset(...images()),
  imageDatasetFromIdx: () => data.imageDatasetFromIdx(...images().map((array) => data.encodeIdx(array))),
  loadMnist: () => data.imageDataset(...images()),
  // nn
  Meter: () => new nn.Meter(['loss']),
  Tally: () => new nn.Tally(nn.confusionMatrix({ classes: 30 })),
  ModuleList: () => new nn.ModuleList([new nn.Linear(2, 2)]),
  ModuleDict: () => new nn.ModuleDict({ a: new nn.Linear(2, 2) }),
  Transformer: () =>
    new nn.Transformer({ dModel: 4, nhead: 2, numEncoderLayers: 1, numDecoderLayers: 1, dimFeedforward: 4 }),
  ParameterGroups: () => new nn.ParameterGroups(nn.SGD, [{ parameters: parameters() }]),
  LBFGS: () => new nn.LBFGS(parameters()),
  Muon: () => new nn.Muon(new nn.Linear(3, 2, { bias: false }).parameters()),
  WeightAverage: () => new nn.WeightAverage(new nn.Linear(2, 2)),
  GradScaler: () => new nn.GradScaler(),
  QuantizedLinear: () => nn.quantize(new nn.Linear(64, 64)),
  quantize: () => nn.quantize(new nn.Sequential(new nn.Linear(4, 4))),
  Replicated: () => nn.replicate(new nn.Linear(2, 2), [core.getEngine()]),
  replicate: () => nn.replicate(new nn.Linear(2, 2), [core.getEngine()]),
  GradientAccumulator: () => new nn.GradientAccumulator(2),
  ReduceOnPlateau: () => new nn.ReduceOnPlateau(new nn.SGD(parameters())),
  summary: () => nn.summary(new nn.Linear(2, 2), [1, 2]),
  Module: () => new nn.Sequential(...Array.from({ length: 50 }, () => new nn.Linear(3, 3))),
  Sequential: () => new nn.Sequential(new nn.Linear(3, 4), new nn.ReLU()),
  Optimizer: () => new nn.SGD(parameters(), { momentum: 0.9 }),
  stateDict: () => new nn.TransformerBlock(8, 2).stateDict(),
  ...Object.fromEntries(
    'Adadelta Adagrad Adam AdamW AMSGrad Adamax NAdam RAdam Rprop LAMB Adafactor Lion RMSProp SGD'
      .split(' ')
      .map((name) => [name, () => new entries.nn[name](parameters(), { lr: 0.1 })]),
  ),
  ...Object.fromEntries(
    Object.entries({
      AvgPool2d: [2],
      BatchNorm2d: [8],
      AdaptiveAvgPool1d: [2],
      AdaptiveAvgPool2d: [2],
      AdaptiveAvgPool3d: [2],
      AdaptiveMaxPool1d: [2],
      AdaptiveMaxPool2d: [2],
      AdaptiveMaxPool3d: [2],
      GRUCell: [3, 3],
      LSTMCell: [3, 3],
      RNNCell: [3, 3],
      GroupNorm: [2, 8],
      InstanceNorm1d: [8],
      InstanceNorm2d: [8],
      InstanceNorm3d: [8],
      LocalResponseNorm: [3],
      Conv1d: [3, 8, 3],
      Conv3d: [3, 8, 3],
      ConvTranspose1d: [3, 8, 3],
      ConvTranspose3d: [3, 8, 3],
      EmbeddingBag: [1000, 16],
      Bilinear: [2, 3, 4],
      BatchNorm1d: [8],
      BatchNorm3d: [8],
      AvgPool1d: [2],
      AvgPool3d: [2],
      MaxPool1d: [2],
      MaxPool3d: [2],
      Fold: [4, 2],
      PixelShuffle: [2],
      PixelUnshuffle: [2],
      Unfold: [2],
      Upsample: [{ scaleFactor: 2 }],
      Unflatten: [1, [2, 2]],
      Threshold: [1, 2],
      TransformerDecoderLayer: [8, 2],
      TransformerEncoderLayer: [8, 2],
      LPPool1d: [2, 2],
      LPPool2d: [2, 2],
      MaxUnpool1d: [2],
      MaxUnpool2d: [2],
      MaxUnpool3d: [2],
      TransformerDecoder: [() => new nn.TransformerDecoderLayer(8, 2), 1],
      TransformerEncoder: [() => new nn.TransformerBlock(8, 2), 1],
      CELU: [],
      GLU: [],
      HardSigmoid: [],
      HardTanh: [],
      LogSigmoid: [],
      Softmax2d: [],
      Softmin: [],
      Softsign: [],
      AlphaDropout: [],
      Dropout1d: [],
      Dropout2d: [],
      Dropout3d: [],
      FeatureAlphaDropout: [],
      Identity: [],
      HardShrink: [],
      PReLU: [],
      RReLU: [],
      SoftShrink: [],
      TanhShrink: [],
      RotaryEmbedding: [],
      ZeroPad1d: [1],
      ZeroPad2d: [1],
      ZeroPad3d: [1],
      ReflectionPad1d: [1],
      ReflectionPad2d: [1],
      ReflectionPad3d: [1],
      ReplicationPad1d: [1],
      ReplicationPad2d: [1],
      ReplicationPad3d: [1],
      CircularPad1d: [1],
      CircularPad2d: [1],
      CircularPad3d: [1],
      ConstantPad1d: [1, 0],
      ConstantPad2d: [1, 0],
      ConstantPad3d: [1, 0],
      Conv2d: [3, 8, 3],
      ConvTranspose2d: [3, 8, 3],
      Embedding: [1000, 16],
      GRU: [4, 4],
      LSTM: [4, 4, { numLayers: 3, bidirectional: true }],
      LayerNorm: [8],
      Linear: [1000, 1000],
      MaxPool2d: [2],
      MultiHeadAttention: [8, 2],
      RMSNorm: [8],
      RNN: [4, 4],
      TransformerBlock: [64, 2],
    }).map(([name, args]) => [name, () => new entries.nn[name](...args)]),
  ),
  ...Object.fromEntries(
    (
      'Dropout ELU Flatten GELU GlobalAvgPool2d HardSwish LeakyReLU LogSoftmax Mish ReLU ReLU6 SELU SiLU Sigmoid Softmax ' +
      'Softplus Tanh'
    )
      .split(' ')
      .map((name) => [name, () => new entries.nn[name]()]),
  ),
  // errors
  ArgumentError: () => text(() => core.full([2], 7, { dtype: 'float8' })),
  CompileError: () =>
    text(() => testing.createReferenceEngine().compile([{ ...program, body: [...program.body].reverse() }])),
  DTypeError: () => text(() => core.add(core.ones([2]), core.ones([2], { dtype: 'int32' }))),
  DeviceError: () => new core.DeviceError('cpu', 'a read of 16 bytes gave 12'),
  DeviceFaultError: () => new core.DeviceFaultError('cuda', 'a card', 'a kernel went out of bounds', 700),
  DeviceLostError: () => new core.DeviceLostError('cpu', 'a processor', 'somebody pulled the plug'),
  DisposedError: () => {
    const t = core.ones([2]);
    t.dispose();
    return text(() => t.add(1));
  },
  EngineDisposedError: () => new core.EngineDisposedError('cpu', 'alloc'),
  EngineMissingError: () => new core.EngineMissingError('here', 'there is none'),
  GradientError: () => text(() => core.ones([2]).backward()),
  GraphInvariantError: () => new core.GraphInvariantError('nothing', []),
  NnError: () => text(() => new nn.Adam([])),
  NumberTypeError: () => text(() => numbers.numberTensor([1n], numbers.bigintType).div(2.5).data()),
  OperationError: () => new core.OperationError('add', 'went wrong'),
  OutOfMemoryError: () =>
    new core.OutOfMemoryError('cpu', { requested: 1, live: 2, reserved: 3, limit: 4 }).explained(5, []),
  PolygradError: () => new core.PolygradError('UNSUPPORTED', 'here', 'went wrong'),
  ShapeError: () => text(() => core.add(core.ones([2]), core.ones([3]))),
  UnsupportedError: () => new core.UnsupportedError('here', 'went wrong'),
  WebGpuError: () => new backendWebGpu.WebGpuError('went wrong'),
  DataError: () => text(() => data.parseIdx(new Uint8Array([1, 2, 3]))),
  MachineCodeError: () => text(() => emitMachine.emitMachineCode({ ...increment(), group: [2, 1, 1] }, machine)),
  PrintError: () => {
    const p = new kernels.ProgramBuilder();
    p.store(p.e.param(0, 'float64', 'write', 1), 0, p.e.constant('float64', 1));
    return text(() => emitC.printWgsl(p.build({ name: 'one' })));
  },
  PtxError: () => text(() => emitPtx.capabilityFor({ computeCapability: 70, isa: '9.0' })),
};

/** Most characters: a screen or two. Lists have as many as their elements ask for. */
const most = 2500;
const longer = {
  // A line for each of at most a hundred nodes.
  usesOf: 6000,
  CompileError: 40_000,
  'profile with texts': 200_000,
  Module: 6000,
  // Three attentions with all that they were asked for.
  Transformer: 3000,
  printOpenCl: 40_000,
  printWgsl: 40_000,
  emitPtx: 40_000,
};

let engine;

describe('what people see', () => {
  beforeAll(async () => {
    engine = backendCpu.createCpuEngine({ threads: 1 });
    await core.setEngine(engine);
  });
  afterAll(() => engine.dispose());

  it('has something to show of every name', () => {
    const operations = new Set(publicOperations().map(({ name }) => name));
    const missing = Object.entries(entries).flatMap(([entry, names]) =>
      Object.keys(names)
        .filter((name) => !operations.has(name) && !plain.has(name) && !data_.has(name) && !(name in makers))
        .map((name) => `${entry}.${name}`),
    );
    expect(missing, 'new names: give each a maker above if it makes objects, else list it in `plain`').toEqual([]);
  });

  it.each(Object.keys(makers))('%s', async (name) => {
    const object = await makers[name]();
    // What is written out as a tree does not come back.
    const json = JSON.stringify(object);
    const seen = inspect(object);
    const limit = longer[name] ?? most;
    expect(json?.length ?? 0, json?.slice(0, 500)).toBeLessThan(limit);
    expect(seen.length, seen.slice(0, 500)).toBeLessThan(limit);
    if (object instanceof Error) expect(JSON.parse(json)).toMatchObject({ name: object.name, message: object.message });
    // Maps and sets are nothing in JSON.
    if (object !== null) expect(json?.replace(/"(options|e)":\{\}/g, '') ?? '').not.toMatch(/:\{\}/);
  });

  it('gives every error one root, with a code and who noticed', async () => {
    const names = Object.keys(makers).filter((name) => name.endsWith('Error'));
    expect(names.length).toBeGreaterThan(15);
    // Those are all that a package exports, but for what an argument of a test throws.
    const classes = Object.values(entries).flatMap((exported) =>
      Object.entries(exported)
        .filter(([, value]) => typeof value === 'function' && value.prototype instanceof Error)
        .map(([name]) => name),
    );
    expect(new Set(classes)).toEqual(new Set([...names, 'HostileError']));
    for (const name of names) {
      const error = await makers[name]();
      expect(error, name).toBeInstanceOf(Error);
      expect(error, name).toBeInstanceOf(core.PolygradError);
      expect(error.name).toBe(name);
      expect(error.code, name).toMatch(/^[A-Z_]+$|^[a-z]+$/);
      expect(error.op.length, name).toBeGreaterThan(0);
      expect(error.message.startsWith(`[${error.op}] `), error.message).toBe(true);
      // No class but the root takes in all.
      expect(error instanceof core.ShapeError, name).toBe(name === 'ShapeError');
    }
    expect(new Error('[add] mine') instanceof core.PolygradError).toBe(false);
    expect({ code: 'SHAPE', op: 'add' } instanceof core.PolygradError).toBe(false);
  });

  it('shows a profile as a table, with figures as JSON', async () => {
    const report = await core.profile(step, { sources: true });
    const lines = inspect(report).split('\n');
    expect(lines[0]).toMatch(
      /^Profile: \d+ kernels? in \d+ batch(es)?, \d+ new plans?( \([\d.e+-]+ ms\))?, [\d.e+-]+ ms$/,
    );
    expect(lines[1].trim()).toMatch(/^ms +Mflop +MB +batch +engine +kernel$/);
    expect(lines).toHaveLength(2 + report.kernels.length);
    const { kernels: rows, submits } = JSON.parse(JSON.stringify(report));
    expect(submits).toBe(report.submits);
    expect(rows[0]).toMatchObject({ name: report.kernels[0].name, engine: 'cpu', milliseconds: expect.any(Number) });
    expect(rows[0].source.text).toBe(report.kernels[0].source.text);
    expect(Object.keys(report.kernels[0])).not.toContain('program');
    expect(kernels.printProgram(report.kernels[0].program)).toContain(report.kernels[0].name);
  });

  it('shows an engine by its name, device and dtypes', () => {
    expect(inspect(engine)).toMatch(/^CpuEngine \{\s+name: 'cpu',\s+device: '.*1 thread',\s+dtypes: 'float32 /);
    expect(JSON.parse(JSON.stringify(engine.caps)).dtypes).toContain('float64');
  });
});
