/**
 * Values of a kernel while its body runs: expressions of the kernel IR with the names that tensors have.
 *
 * Nothing is computed here. Every step is checked by the rules that the verifier has for that operation, so that what is wrong is said where it
 * is written.
 *
 * Also the errors of kernels of users: the reason, and the line of the user's body.
 */
import { type Exprs, uniqueNode } from '@polygrad/compiler/ir/expr';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { type BinaryOp, type TernaryOp, type UnaryOp, ternaryOps } from '@polygrad/compiler/ir/operations';
import { lowOf } from '@polygrad/compiler/ir/node';
import { nodeError } from '@polygrad/compiler/ir/verify/verify';
import { type DType, dtypeInfo, isFloat } from '@polygrad/compiler/shape/dtype';
import { checkWeak } from '@polygrad/compiler/shape/promotion';
import { say, shown } from '@polygrad/compiler/shape/shown';
import { OperationError, PolygradError } from '@polygrad/compiler/shape/errors';

/**
 * A kernel of a user that breaks a rule of kernels: dtypes that do not fit, a barrier that not all threads get to, too much memory of a group.
 * The message ends with the line of the body that asked for it, where the platform tells lines.
 *
 * @example
 * const bad = defineKernel({
 *   name: 'bad',
 *   form: 'elementwise',
 *   inputs: { x: 'int32' },
 *   outputs: { y: 'x' },
 *   body: (_, { x }) => x.exp(),
 * });
 * bad({ x: tensor([1], { dtype: 'int32' }) }); // throws KernelError
 */
export class KernelError extends OperationError {
  override readonly name: string = 'KernelError';
  /** Position in the user's code: `file:line:column`; null if unknown. */
  readonly where: string | null;

  constructor(op: string, message: string, where: string | null) {
    super(op, where === null ? message : `${message} (${where})`);
    this.where = where;
  }
}

/** A place in the user's code. The stack is formatted only on request, because that is slow. */
export type Site = Error;

/** Where the code is that calls the builder now. */
export function site(): Site {
  return new Error('a call of the kernel builder');
}

/** The same for what failed, with more of the calls: a body that has returned leaves the user's call far below. */
function siteOfFailure(): Site {
  const options = Error as { stackTraceLimit?: number };
  const before = options.stackTraceLimit;
  try {
    options.stackTraceLimit = 50;
    return site();
  } finally {
    if (before === undefined) delete options.stackTraceLimit;
    else options.stackTraceLimit = before;
  }
}

/** Files of this package and of its compiler are not the user's: a body may have returned when its mistake is found. */
const own = /[/\\](?:core|compiler)[/\\](?:src|dist)[/\\][^:]*(?<!\.test)\.[jt]s/;
const place = /((?:[a-z-]+:\/\/|\/|[A-Z]:\\)[^\s()]+:\d+:\d+)\)?$/;

/** The nearest line of a stack that is not of these packages. */
export function whereOf({ stack }: Site): string | null {
  for (const line of (stack ?? '').split('\n').slice(1)) {
    const found = place.exec(line.trim());
    if (found !== null && !own.test(found[1]!)) return found[1]!.replace(/^file:\/\//, '');
  }
  return null;
}

/** Runs a step of the builder. Errors of the kernel IR become a KernelError in the kernel's name, with the user's line. */
export function checked<T>(op: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (error instanceof KernelError) throw error;
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof PolygradError || text.startsWith('[kernel.'))
      throw new KernelError(op, text.replace(/^\[[^\]]*\] /, ''), whereOf(siteOfFailure()));
    throw error;
  }
}

/** Throws a KernelError with the user's line. */
export function fail(op: string, message: string, at: Site = siteOfFailure()): never {
  throw new KernelError(op, message, whereOf(at));
}

/** What operations of kernel values take: a value, or a number of the dtype of the value that it meets. */
export type KernelOperand = KernelValue | number | bigint | boolean;

/** One run of a body: its name for messages, the factory of its expressions, and the block that is being written. */
export interface Scope {
  readonly op: string;
  readonly e: Exprs;
  block: { open: boolean };
}

/** The expression of an operand that meets a dtype. */
export function operandOf(scope: Scope, x: KernelOperand, dtype: DType): KNode {
  if (x instanceof KernelValue) return nodeOf(scope, x);
  if (typeof x !== 'number' && typeof x !== 'bigint' && typeof x !== 'boolean')
    fail(scope.op, say`${shown(x)} is no value of a kernel: give a KernelValue or a number`);
  return checked(scope.op, () => {
    checkWeak(scope.op, x, dtype);
    return scope.e.constant(dtype, x);
  });
}

/** The expression of a value of this run. */
export function nodeOf(scope: Scope, x: KernelValue): KNode {
  if (x.scope !== scope)
    fail(scope.op, 'a value of another kernel, or of another call: use values where they are made');
  if (!x.block.open) fail(scope.op, 'a value of a loop or an ifThen() that has ended: hand it out in a variable()');
  return x.node;
}

/** The operation on expressions, simplified, if the verifier takes it. */
function operation(scope: Scope, op: UnaryOp | BinaryOp | TernaryOp, src: readonly KNode[], dtype: DType): KernelValue {
  return checked(scope.op, () => {
    const wrong = nodeError(uniqueNode(op, dtype, 1, src, null) as KNode);
    if (wrong !== null)
      fail(scope.op, `${op} ${wrong}${src.some((s) => s.dtype !== src[0]!.dtype) ? '; cast one of them' : ''}`);
    const { e } = scope;
    const [a, b, c] = src as [KNode, KNode, KNode];
    const made =
      b === undefined
        ? e.unary(op as UnaryOp, a)
        : op in ternaryOps
          ? e.ternary(op as TernaryOp, a, b, c)
          : e.binary(op as BinaryOp, a, b);
    return new KernelValue(scope, made);
  });
}

/** The first value where a condition holds, else the second. */
export function choose(scope: Scope, condition: KernelValue, a: KernelOperand, b: KernelOperand): KernelValue {
  const dtype = a instanceof KernelValue ? a.dtype : b instanceof KernelValue ? b.dtype : weakOf(a);
  const src = [operandOf(scope, condition, 'bool'), operandOf(scope, a, dtype), operandOf(scope, b, dtype)];
  return operation(scope, 'WHERE', src, dtype);
}

/** The dtype of a number that meets no value. */
export function weakOf(x: number | bigint | boolean): DType {
  return typeof x === 'bigint' ? 'int64' : typeof x === 'boolean' ? 'bool' : 'float32';
}

/**
 * One number of a kernel: an element that was read, an index, or what was computed of such. Its methods have the names and the meaning of those
 * of tensors; the other operand has the same dtype, or is a number. They do not compute: they write the kernel.
 *
 * Integers wrap; those divided by 0 give 0. `cast` of floats to integers saturates, and NaN gives 0.
 *
 * @example
 * const swish = defineKernel({
 *   name: 'swish',
 *   form: 'elementwise',
 *   inputs: { x: 'float32' },
 *   outputs: { y: 'x' },
 *   body: (_, { x }) => x.mul(x.sigmoid()),
 * });
 * swish({ x: tensor([0, 100]) }).y; // [0, 100]
 */
export class KernelValue {
  /** @internal */
  readonly scope: Scope;
  /** @internal */
  readonly node: KNode;
  /** @internal */
  readonly block: { open: boolean };

  /** @internal */
  constructor(scope: Scope, node: KNode) {
    this.scope = scope;
    this.node = node;
    this.block = scope.block;
  }

  get dtype(): DType {
    return this.node.dtype as DType;
  }

  #unary(op: UnaryOp, dtype: DType = this.dtype): KernelValue {
    return operation(this.scope, op, [nodeOf(this.scope, this)], dtype);
  }

  #binary(op: BinaryOp, other: KernelOperand): KernelValue {
    return operation(this.scope, op, [nodeOf(this.scope, this), operandOf(this.scope, other, this.dtype)], this.dtype);
  }

  #compare(op: 'LT' | 'LE' | 'EQ', other: KernelOperand, turned = false): KernelValue {
    const src = [nodeOf(this.scope, this), operandOf(this.scope, other, this.dtype)];
    return operation(this.scope, op, turned ? src.reverse() : src, 'bool');
  }

  add(other: KernelOperand): KernelValue {
    return this.#binary('ADD', other);
  }
  sub(other: KernelOperand): KernelValue {
    return this.#binary('SUB', other);
  }
  mul(other: KernelOperand): KernelValue {
    return this.#binary('MUL', other);
  }
  /** The quotient of floats. */
  div(other: KernelOperand): KernelValue {
    return this.#binary('DIV', other);
  }
  /** The quotient of integers, rounded down. */
  floorDivide(other: KernelOperand): KernelValue {
    const quotient = this.#binary('IDIV', other);
    return this.#signed(other) ? quotient.sub(this.#carries(other).cast(this.dtype)) : quotient;
  }
  /** What is left of integers by `floorDivide`: it has the sign of the divisor. */
  remainder(other: KernelOperand): KernelValue {
    const rest = this.#binary('IREM', other);
    if (!this.#signed(other)) return rest;
    return choose(this.scope, this.#carries(other), rest.add(other), rest);
  }
  /** Whether the quotient cut off is above the quotient rounded down. */
  #carries(other: KernelOperand): KernelValue {
    const rest = this.#binary('IREM', other);
    const by = new KernelValue(this.scope, operandOf(this.scope, other, this.dtype));
    return rest.notEqual(0).logicalAnd(rest.less(0).notEqual(by.less(0)));
  }
  #signed(other: KernelOperand): boolean {
    const by = operandOf(this.scope, other, this.dtype);
    return dtypeInfo[this.dtype].kind === 'int' && !(lowOf(this.node) >= 0 && lowOf(by) >= 0);
  }
  pow(other: KernelOperand): KernelValue {
    return this.#binary('POW', other);
  }
  atan2(other: KernelOperand): KernelValue {
    return this.#binary('ATAN2', other);
  }
  /** The larger one; NaN where one is. */
  maximum(other: KernelOperand): KernelValue {
    return this.#binary('MAX', other);
  }
  /** The smaller one; NaN where one is. */
  minimum(other: KernelOperand): KernelValue {
    return this.#binary('MIN', other);
  }
  /** This times a factor plus a number, rounded once. */
  fma(factor: KernelOperand, added: KernelOperand): KernelValue {
    const { scope, node, dtype } = this;
    return operation(scope, 'FMA', [node, operandOf(scope, factor, dtype), operandOf(scope, added, dtype)], dtype);
  }

  neg(): KernelValue {
    return this.#unary('NEG');
  }
  abs(): KernelValue {
    return this.#unary('ABS');
  }
  sqrt(): KernelValue {
    return this.#unary('SQRT');
  }
  rsqrt(): KernelValue {
    return this.#unary('RSQRT');
  }
  reciprocal(): KernelValue {
    return this.#unary('RECIP');
  }
  exp(): KernelValue {
    return this.#unary('EXP');
  }
  exp2(): KernelValue {
    return this.#unary('EXP2');
  }
  expm1(): KernelValue {
    return this.#unary('EXPM1');
  }
  log(): KernelValue {
    return this.#unary('LOG');
  }
  log2(): KernelValue {
    return this.#unary('LOG2');
  }
  log1p(): KernelValue {
    return this.#unary('LOG1P');
  }
  sin(): KernelValue {
    return this.#unary('SIN');
  }
  cos(): KernelValue {
    return this.#unary('COS');
  }
  tan(): KernelValue {
    return this.#unary('TAN');
  }
  tanh(): KernelValue {
    return this.#unary('TANH');
  }
  erf(): KernelValue {
    return this.#unary('ERF');
  }
  /** 1 / (1 + exp(-x)), without overflow. */
  sigmoid(): KernelValue {
    const small = this.abs().neg().exp();
    return choose(this.scope, this.less(0), small, 1).div(small.add(1));
  }
  floor(): KernelValue {
    return this.#unary('FLOOR');
  }
  ceil(): KernelValue {
    return this.#unary('CEIL');
  }
  /** The nearest whole number; halves to the even one. */
  round(): KernelValue {
    return this.#unary('ROUND');
  }
  trunc(): KernelValue {
    return this.#unary('TRUNC');
  }
  isNaN(): KernelValue {
    return this.#unary('ISNAN', 'bool');
  }

  less(other: KernelOperand): KernelValue {
    return this.#compare('LT', other);
  }
  lessEqual(other: KernelOperand): KernelValue {
    return this.#compare('LE', other);
  }
  greater(other: KernelOperand): KernelValue {
    return this.#compare('LT', other, true);
  }
  greaterEqual(other: KernelOperand): KernelValue {
    return this.#compare('LE', other, true);
  }
  equal(other: KernelOperand): KernelValue {
    return this.#compare('EQ', other);
  }
  notEqual(other: KernelOperand): KernelValue {
    return this.#compare('EQ', other).logicalNot();
  }

  #bool(): void {
    if (this.dtype !== 'bool')
      fail(this.scope.op, say`takes bool: got ${this.dtype}; compare it, or use the bitwise form`);
  }
  logicalAnd(other: KernelOperand): KernelValue {
    this.#bool();
    return this.#binary('AND', other);
  }
  logicalOr(other: KernelOperand): KernelValue {
    this.#bool();
    return this.#binary('OR', other);
  }
  logicalNot(): KernelValue {
    this.#bool();
    return this.#unary('NOT');
  }
  bitwiseAnd(other: KernelOperand): KernelValue {
    return this.#binary('AND', other);
  }
  bitwiseOr(other: KernelOperand): KernelValue {
    return this.#binary('OR', other);
  }
  bitwiseXor(other: KernelOperand): KernelValue {
    return this.#binary('XOR', other);
  }
  bitwiseNot(): KernelValue {
    if (isFloat(this.dtype)) fail(this.scope.op, say`NOT does not take ${this.dtype}`);
    return this.#unary('NOT');
  }
  leftShift(other: KernelOperand): KernelValue {
    return this.#binary('SHL', other);
  }
  /** Keeps the sign of signed integers. */
  rightShift(other: KernelOperand): KernelValue {
    return this.#binary('SHR', other);
  }

  cast(dtype: DType): KernelValue {
    return checked(this.scope.op, () => {
      if (!(dtype in dtypeInfo))
        fail(this.scope.op, say`${dtype} is no dtype: ${Object.keys(dtypeInfo).join(', ')} are`);
      return new KernelValue(this.scope, this.scope.e.cast(this.node, dtype));
    });
  }
  /** The same bits as another dtype of the same size. */
  bitcast(dtype: DType): KernelValue {
    return checked(this.scope.op, () => {
      const wrong =
        dtype in dtypeInfo ? nodeError(uniqueNode('BITCAST', dtype, 1, [this.node], null) as KNode) : 'is no dtype';
      if (wrong !== null) fail(this.scope.op, say`bitcast ${wrong}`);
      return new KernelValue(this.scope, this.scope.e.bitcast(this.node, dtype));
    });
  }

  /** Bodies run once, before any data is there: nothing can be decided by a value. */
  valueOf(): never {
    return fail(
      this.scope.op,
      'a value of a kernel is not known while its body runs: use less(), equal() and where(), or ifThen()',
    );
  }
}
