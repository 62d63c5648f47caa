/**
 * Help for people who write programs, put on Tensors in Node, and in pages while they are developed: it is `#help` of methods/own-methods.ts there
 * (engine/browsers.ts is it in others). What it puts throws, with what to do instead, where JavaScript would give undefined or say little; or shows values.
 */
import type { Node } from '../graph/node.ts';
import { peek } from '../runtime/reading.ts';
import { ArgumentError, OperationError } from '@polygrad/compiler/shape/errors';
import { isPlain, say, shown } from '@polygrad/compiler/shape/shown';
import { refuseNames } from '#shown-as';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { formatArray } from '../tensor/format.ts';

/** Most elements that the console shows: of a tensor by itself, and of one inside something else. */
const [mostAlone, mostInside] = [1000, 16];

interface Shown {
  readonly node: Node;
  readonly disposed: boolean;
  toString(): string;
}

/** A tensor as Node's console shows it: with its values, if they are few and need neither computing nor a device. */
function inspected(this: Shown, depth: number): string {
  const { node, disposed } = this;
  const head = this.toString();
  const size = sizeOf(node.shape);
  // Inside of something, a console that goes two levels deep has one left.
  if (disposed || size > (depth < 2 ? mostInside : mostAlone)) return head;
  const values = peek(node);
  if (values === null) return depth < 2 ? head : `${head}, await t.print() shows its values`;
  const text = formatArray(values, node.shape, node.dtype);
  return text.includes('\n') ? `${head}\n${text}` : `${head} ${text}`;
}

function refusal(what: string, remedy: string, self: Shown): Error {
  return new ArgumentError('tensor', say`${what} of a ${self.toString()}: ${remedy}`);
}

function refuse(what: string, remedy: string): () => never {
  return function (this: Shown): never {
    throw refusal(what, remedy, this);
  };
}

/** For what is not there at all. */
const absent = 'not there yet; compute it elsewhere from await t.array(), and tensor() takes the result';

/** For functions of the entry for linear algebra. */
const ofMatrices = (call: string): string => `${call} of '@polygrad/core/linear-algebra', a function`;

/** What arrays, and tensors of PyTorch, NumPy and TensorFlow.js have by other names, and what to write here. */
const elsewhere: Readonly<Record<string, string>> = {
  'T t mT': 'transpose(t), or permute(t, axes)',
  'swapaxes swapdims': 'transpose(t, 0, 1)',
  movedim: 'moveAxis(t, from, to)',
  'view viewAs view_as reshapeAs reshape_as': 'reshape(t, shape)',
  ravel: 'flatten(t)',
  'expand_as expandAs': 'expand(t, shape)',
  'float astype asType toFloat': "cast(t, 'float32')",
  double: "cast(t, 'float64')",
  half: "cast(t, 'float16')",
  bfloat16: "cast(t, 'bfloat16')",
  'int long toInt': "cast(t, 'int32')",
  byte: "cast(t, 'uint8')",
  'bool toBool': "cast(t, 'bool')",
  'numel nelement': 't.size',
  'dim ndimension rank': 't.ndim',
  'cpu cuda': "await setEngine('cuda') before tensors are made, or t.to(engine)",
  'numpy tolist toList toArray': 'await t.data() or await t.array()',
  'clone copy': 'the tensor itself, as nothing changes it but assign(); t.mul(1) is another one',
  'requires_grad= requires_grad_ requiresGrad_ trainable=':
    't.requiresGrad = true; freeze() of a module keeps its parameters as they are',
  'zero_ zeroGrad grad_fn': 't.grad = null, or zeroGrad() of the optimizer',
  'add_ sub_ mul_ div_ fill_ copy_ clamp_ uniform_ normal_ addScalar mulScalar subScalar divScalar':
    'an operation that gives a new tensor, such as add(t, 1); assign() puts it into a parameter',
  'clamp clipByValue': 'clip(t, least, most)',
  var: 'variance(t, { axis: 0, correction: 1 })',
  amax: 'max(t, axis)',
  amin: 'min(t, axis)',
  'mm mv bmm': 'matmul(a, b)',
  'addmm baddbmm': 'matmul(a, b).add(c)',
  einsum: "einsum('ij,jk->ik', a, b)",
  'multiply times': 'mul(a, b)',
  'subtract minus': 'sub(a, b)',
  plus: 'add(a, b)',
  'divide true_divide dividedBy': 'div(a, b)',
  absolute: 'abs(t)',
  negative: 'neg(t)',
  'allclose allClose': 'await allClose(a, b)',
  take_along_dim: 'takeAlongAxis(t, indices, axis)',
  'new_zeros new_ones new_full new_tensor': 'zeros(shape, { dtype: t.dtype }), or ones, full, tensor',
  'register_hook retain_grad': 'grad(f), or a GradientTape, for gradients by values in between',
  'cat concatenate': 'concat([a, b], 0)',
  'type_as typeAs': 'cast(t, other.dtype)',
  eq: 'equal(a, b)',
  ne: 'notEqual(a, b)',
  lt: 'less(a, b)',
  le: 'lessEqual(a, b)',
  gt: 'greater(a, b)',
  ge: 'greaterEqual(a, b)',
  where: 'where(condition, a, b)',
  clamp_min: 'clip(t, least)',
  clamp_max: 'clip(t, null, most)',
  std_mean: 'std(t, { axis: 0, correction: 1 }) and mean(t, 0)',
  var_mean: 'variance(t, { axis: 0, correction: 1 }) and mean(t, 0)',
  aminmax: 'min(t, axis) and max(t, axis)',
  kthvalue: 'select(sort(t, { axis: 0 }), 0, k - 1)',
  msort: 'sort(t, { axis: 0 })',
  argwhere: 'await nonZero(t)',
  bincount: 'scatterAdd(zeros([classes]), t, ones(t.shape))',
  isin: 'any(equal(unsqueeze(t, -1), values), -1)',
  expit: 'sigmoid(t)',
  'ger addr': 'outer(a, b)',
  dist: 'norm(sub(a, b))',
  'cov corrcoef': 'matmul(c, transpose(c)) with c = t less its mean',
  logit: 'sub(log(t), log1p(neg(t)))',
  'hsplit vsplit': 'split(t, sizes, axis)',
  'fliplr flipud': 'flip(t, axes)',
  masked_scatter: 'where(mask, values, t)',
  multinomial: 'multinomial(t, count), or categorical(logits)',
  'trapz trapezoid': 'add(narrow(t, 0, 1, n - 1), narrow(t, 0, 0, n - 1)).sum().div(2)',
  // A loop up to an undefined length ends at once.
  length: 't.size elements, or t.shape[0] rows',
  'map filter forEach reduce': 'operations take the whole tensor, as t.mul(2) and t.sum() do; unbind(t) gives its rows',
  'expandDims expand_dims': 'unsqueeze(t, axis)',
  'as1D as2D as3D as4D as5D asScalar': 'reshape(t, shape)',
  matMul: 'matmul(a, b)',
  mod: 'remainder(a, b)',
  floorDiv: 'floorDivide(a, b)',
  swish: 'silu(t)',
  reverse: 'flip(t, axes)',
  squaredDifference: 'sub(a, b).square()',
  euclideanNorm: 'norm(t)',
  'resizeBilinear resizeNearestNeighbor': "interpolate(t, { size: [32, 32], mode: 'bilinear' })",
  'inverse inv': ofMatrices('inv(t)'),
  det: ofMatrices('det(t)'),
  'slogdet logdet': ofMatrices('slogDet(t)'),
  cholesky: ofMatrices('cholesky(t)'),
  solve: ofMatrices('solve(a, b)'),
  lstsq: ofMatrices('lstsq(a, b)'),
  qr: ofMatrices('qr(t)'),
  linalg: "functions of '@polygrad/core/linear-algebra'",
  'pinverse pinv': ofMatrices('pinv(t)'),
  svd: ofMatrices('svd(t)'),
  'eigh eigvalsh symeig': ofMatrices('eigh(t)'),
  'matrix_rank matrixRank': ofMatrices('matrixRank(t)'),
  'eig eigvals matrix_power matrix_exp': absent,
  'fft ifft rfft irfft fft2 stft istft': absent,
};

/** Names that are an operation's in small letters, or with underscores: argmax, masked_fill, add_. */
function spellings(): [other: string, remedy: string][] {
  const known = new Set(names);
  return names.flatMap((name) => {
    const others = new Set([name.toLowerCase(), name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]);
    const spelled = [...others].filter((other) => !known.has(other)).map((other) => [other, `it is ${name}`]);
    const changes = `${name}(t, ...) gives a new tensor; assign() puts it into a parameter`;
    return [...spelled, ...[name, ...others].map((other) => [`${other}_`, changes])] as [string, string][];
  });
}

/** Puts methods and members that help on the prototype of Tensors. */
export function putHelp(prototype: object): void {
  putMissing(prototype);
  const names = { ...elsewhere, ...Object.fromEntries(spellings()) };
  refuseNames({ prototype: prototype as Shown }, names, (name, instead, self) =>
    refusal(`no '${name}'`, instead, self),
  );
  const put = (key: PropertyKey, descriptor: PropertyDescriptor): unknown =>
    Object.defineProperty(prototype, key, { configurable: true, ...descriptor });
  put(Symbol.for('nodejs.util.inspect.custom'), { value: inspected });
  // Test runners ask without a key: a failed toEqual shows these texts, and where they are equal all that a tensor is made of. JSON asks with one.
  // What has a tag vitest does not copy first; a copy has no values.
  put(Symbol.toStringTag, { value: 'Tensor' });
  put('toJSON', {
    value(this: Shown, ...key: unknown[]): string {
      return key.length > 0 ? this.toString() : inspected.call(this, 2);
    },
  });
  put(Symbol.iterator, {
    value: refuse(
      'no iteration',
      'unbind(t) gives its rows as tensors, await t.array() its values; tests compare with toBeCloseToTensor of @polygrad/core/matchers',
    ),
  });
  // Programs that take it for an array begin at one end or the other.
  for (let i = -1; i < 10; i++)
    put(String(i), {
      get: refuse(`no element [${i}]`, `select(t, 0, ${i}) is a row, (await t.array())[${i}] its values`),
      set: refuse(
        `no element [${i}] to set`,
        'nothing changes a tensor but assign(); where(), indexCopy() and scatter() give new ones',
      ),
    });
}

// Methods that say what to do where there are none (help.ts says where). methods.ts puts the real ones over them.

/** The operations that methods.ts makes methods, but for the four that all Tensors have. */
const names: readonly string[] = [
  'abs acos acosh adaptiveAvgPool1d adaptiveAvgPool2d adaptiveAvgPool3d adaptiveMaxPool1d adaptiveMaxPool2d',
  'adaptiveMaxPool3d addcdiv addcmul affineGrid all any argMax argMin argSort asin asinh at atan atan2 atanh',
  'avgPool1d avgPool2d avgPool3d batchNorm bilinear binaryCrossEntropy binaryCrossEntropyWithLogits bitwiseAnd',
  'bitwiseNot bitwiseOr bitwiseXor broadcastTo bucketize cast cbrt cdist ceil celu chunk clip contiguous conv1d',
  'conv2d conv3d convTranspose1d convTranspose2d convTranspose3d copysign cos cosh cosineEmbeddingLoss',
  'cosineSimilarity countNonZero cross crossEntropy cumMax cumMin cumProd cumSum depthwiseConv2d detach diag',
  'diagEmbed diagonal diceLoss diff digamma dot dropout elu embedding embeddingBag equal erf erfc erfinv exp exp2',
  'expand expm1 flatten flip floor floorDivide fma fmod focalLoss fold frac gather gatherNd gaussianNllLoss gelu',
  'gemm gemv globalAvgPool2d glu graphConv greater greaterEqual gridSample groupNorm hardShrink hardSigmoid',
  'hardSwish hardTanh heaviside hingeEmbeddingLoss hingeLoss histogram huberLoss hypot indexAdd indexCopy indexFill',
  'indexSelect inner instanceNorm interpolate isClose isFinite isInf isNaN klDiv kron l1Loss layerNorm leakyRelu',
  'leftShift lerp less lessEqual lgamma localResponseNorm locallyConnectedConv2d log log10 log1p log2 logAddExp',
  'logCumSumExp logSigmoid logSoftmax logSumExp logicalAnd logicalNot logicalOr logicalXor lpPool1d lpPool2d',
  'marginRankingLoss maskedFill maskedSelect matmul max maxPool1d maxPool2d maxPool3d maxUnpool1d maxUnpool2d',
  'maxUnpool3d maximum mean median min minimum mish moveAxis mseLoss multiLabelMarginLoss multiLabelSoftMarginLoss',
  'multiMarginLoss nanMean nanSum nanToNum narrow neg nllLoss nonZero norm normalize notEqual oneHot outer pad',
  'permute pixelShuffle pixelUnshuffle poissonNllLoss polygamma pow prelu prod quantile rbfKernel reciprocal relu',
  'relu6 remainder repeat repeatInterleave reshape rightShift rmsNorm roll rot90 rotaryEmbedding round rsqrt',
  'scaledDotProductAttention scatter scatterAdd scatterReduce searchSorted select selu sigmoid sign silu sin sinc',
  'sinh slice smoothL1Loss softMarginLoss softShrink softmax softmin softplus softsign sort split sqrt square',
  'squeeze std sum take takeAlongAxis tan tanh tanhShrink tensordot threshold tile to topK trace transpose tril',
  'tripletMarginLoss triu trunc unbind unflatten unfold unique unsqueeze variance vdot xlogy',
].flatMap((line) => line.split(' '));

/** Puts methods that throw on an object. */
export function putMissing(prototype: object): void {
  for (const name of names) {
    const value = (): never => {
      throw new OperationError(
        name,
        say`no method ${name}: this program imports '@polygrad/core/functions' alone, whose tensors have none; call ${name}(x, ...), or import '@polygrad/core' for methods`,
      );
    };
    Object.defineProperty(prototype, name, { value, configurable: true, writable: true });
  }
}

/** Most arguments of functions, as their texts say. */
const counted = new WeakMap<(...args: never[]) => unknown, number>();

/** Most arguments that a function takes. Its `length` leaves out those from the first default on; its text has them all. */
function mostArguments(f: (...args: never[]) => unknown): number {
  const known = counted.get(f);
  if (known !== undefined) return known;
  // Strings of defaults are no part of the list.
  const text = Function.prototype.toString.call(f).replace(/'[^']*'|"[^"]*"|`[^`]*`/g, '0');
  const start = /^\s*(async\s+)?[\w$]+\s*=>/.test(text) ? -1 : text.indexOf('(');
  let [depth, most, isEmpty] = [0, 0, true];
  for (let at = start; start >= 0 && at < text.length; at++) {
    const letter = text[at]!;
    if ('([{'.includes(letter)) depth++;
    if (')]}'.includes(letter) && --depth === 0) break;
    if (depth === 1 && letter === ',') [most, isEmpty] = [most + 1, true];
    else if (at > start && letter.trim() !== '') isEmpty = false;
    if (depth === 1 && text.startsWith('...', at)) most = Number.POSITIVE_INFINITY;
  }
  if (!isEmpty) most++;
  if (start < 0 || depth !== 0 || most < f.length) most = Number.POSITIVE_INFINITY;
  counted.set(f, most);
  return most;
}

/** Throws where a method is given more than its operation takes, as `t.sum(1, true)` of PyTorch: JavaScript would leave it out; or bounds by name. */
export function checkCount(
  name: string,
  operation: (x: never, ...rest: never[]) => unknown,
  rest: readonly unknown[],
): void {
  const named = name === 'clip' ? rest.find(isPlain) : undefined;
  if (named !== undefined)
    throw new ArgumentError(name, say`bounds are ${shown(named)}: give them in order, t.clip(0, 6), null for none`);
  const most = mostArguments(operation) - 1;
  if (rest.findLastIndex((given) => given !== undefined) < most) return;
  const takes = most === 0 ? 'no arguments' : most === 1 ? 'one argument' : `${most} arguments`;
  throw new ArgumentError(
    name,
    say`${rest.length === 1 ? 'one argument' : `${rest.length} arguments`} where the method takes ${takes}: ${rest[most]} would be left out; give a list as one argument, and settings by name, as t.sum({ axis: [0, 1], keepDims: true })`,
  );
}
