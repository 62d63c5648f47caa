/**
 * Rules every node obeys on its own, in both stages: number and dtypes of sources, lanes, memory accesses.
 */
import { type DType, dtypeInfo, isFloat, isInteger } from '../../shape/dtype.ts';
import { binaryOps, ternaryOps, unaryOps } from '../arithmetic.ts';
import type { BinaryOp, KNode, TernaryOp, UnaryOp } from '../ir.ts';
import { highOf, lowOf } from '../node.ts';

type Kind = (typeof unaryOps)[UnaryOp] | (typeof binaryOps)[BinaryOp];

function accepts(kind: Kind, dtype: DType | 'void'): boolean {
  if (dtype === 'void') return false;
  switch (kind) {
    case 'any':
    case 'compare':
      return true;
    case 'float':
      return isFloat(dtype);
    case 'integer':
      return isInteger(dtype);
    case 'logical':
      return isInteger(dtype) || dtype === 'bool';
    case 'number':
      return true; // MAX and MIN take bool as well
    default:
      return kind satisfies never;
  }
}

function count(n: KNode, low: number, high: number = low): string | null {
  const { length } = n.src;
  return length >= low && length <= high
    ? null
    : `takes ${low}${high === low ? '' : ` to ${high}`} sources: has ${length}`;
}

function isIndex(n: KNode): boolean {
  return n.dtype === 'int32' && n.lanes === 1;
}

/** What is wrong with a node by itself, or null. */
export function nodeError(n: KNode): string | null {
  if (n.op in unaryOps) return unaryError(n, unaryOps[n.op as UnaryOp]);
  if (n.op in binaryOps) return binaryError(n, binaryOps[n.op as BinaryOp]);
  if (n.op in ternaryOps) return ternaryError(n, n.op as TernaryOp);
  const [a] = n.src;
  switch (n.op) {
    case 'PARAM':
    case 'SCALAR':
    case 'SHARED':
      return n.lanes === 1 ? count(n, 0) : 'has one lane';
    case 'REG':
      return n.arg.length > 0 ? count(n, 0) : 'has no registers';
    case 'CONST':
      return (typeof n.arg.value === 'bigint') === (n.dtype === 'int64' || n.dtype === 'uint64')
        ? count(n, 0)
        : 'has a value of another dtype';
    case 'SPECIAL':
      return isIndex(n) ? count(n, 0) : 'is an int32 scalar';
    case 'SUBGROUP': {
      const { op } = n.arg;
      if (n.dtype !== a.dtype || n.lanes !== 1 || dtypeInfo[a.dtype].bytes !== 4)
        return `takes and gives a scalar of four bytes: got ${a.dtype} x ${a.lanes} for ${n.dtype} x ${n.lanes}`;
      return (
        count(n, 1) ?? (isFloat(a.dtype) && (op === 'max' || op === 'min') ? `${op} takes integers` : sameLanes(n))
      );
    }
    case 'RANGE':
      return isIndex(n) && (a === undefined || isIndex(a)) ? count(n, 0, 1) : 'and its limit are int32 scalars';
    case 'LOOP':
      return count(n, 1) ?? (isIndex(n) && isIndex(a) ? null : 'and its extent are int32 scalars');
    case 'IF':
      return (
        count(n, 1) ?? (a.dtype === 'bool' && a.lanes === 1 ? null : `takes a bool scalar: got ${a.dtype} x ${a.lanes}`)
      );
    case 'REDUCE': {
      const arg = n.arg.op === 'argmax' || n.arg.op === 'argmin';
      if (n.dtype !== (arg ? 'int32' : a.dtype)) return `of ${a.dtype} cannot be ${n.dtype}`;
      return bindsRanges(n);
    }
    case 'STAGE':
      return n.dtype === a.dtype ? bindsRanges(n) : `of ${a.dtype} cannot be ${n.dtype}`;
    case 'LOAD':
      return count(n, 2, 4) ?? accessError(n, n.lanes);
    case 'STORE':
    case 'ATOMIC':
      return count(n, 3, 4) ?? accessError(n, n.src[2]?.lanes);
    case 'CAST':
      return count(n, 1) ?? sameLanes(n);
    case 'BITCAST': {
      const fits = dtypeInfo[a.dtype as DType].bytes === dtypeInfo[n.dtype].bytes;
      return count(n, 1) ?? (fits ? sameLanes(n) : `from ${a.dtype} to ${n.dtype}: sizes differ`);
    }
    case 'VEC':
      if (n.src.length !== 1 && n.src.length !== n.lanes)
        return `of ${n.lanes} lanes takes 1 or ${n.lanes} sources: has ${n.src.length}`;
      return n.src.every((s) => s.lanes === 1 && s.dtype === n.dtype) ? null : 'takes scalars of its dtype';
    case 'LANE':
      if (n.arg.lane < 0 || n.arg.lane >= a.lanes) return `${n.arg.lane} of a vector of ${a.lanes} lanes`;
      return n.lanes === 1 && n.dtype === a.dtype ? count(n, 1) : 'is a scalar of the dtype of its vector';
    case 'IOTA':
      return n.dtype === 'int32' ? count(n, 0) : 'is an int32 vector';
    default:
      return null;
  }
}

function unaryError(n: KNode, kind: Kind): string | null {
  const [a] = n.src;
  const wrong = count(n, 1);
  if (wrong !== null) return wrong;
  if (!accepts(kind, a.dtype)) return `does not take ${a.dtype}`;
  if (n.dtype !== (n.op === 'ISNAN' ? 'bool' : a.dtype)) return `of ${a.dtype} cannot be ${n.dtype}`;
  return sameLanes(n);
}

function binaryError(n: KNode, kind: Kind): string | null {
  const [a, b] = n.src;
  const wrong = count(n, 2);
  if (wrong !== null) return wrong;
  if (a.dtype !== b.dtype) return `takes operands of one dtype: got ${a.dtype} and ${b.dtype}`;
  if (!accepts(kind, a.dtype)) return `does not take ${a.dtype}`;
  if (n.dtype !== (kind === 'compare' ? 'bool' : a.dtype)) return `of ${a.dtype} cannot be ${n.dtype}`;
  return sameLanes(n);
}

function ternaryError(n: KNode, op: TernaryOp): string | null {
  const [a, b, c] = n.src;
  const wrong = count(n, 3);
  if (wrong !== null) return wrong;
  if (a.dtype !== (op === 'WHERE' ? 'bool' : n.dtype) || b.dtype !== n.dtype || c.dtype !== n.dtype) {
    return `of ${n.dtype} got ${a.dtype}, ${b.dtype}, ${c.dtype}`;
  }
  if (op !== 'WHERE' && !isFloat(n.dtype as DType)) return `does not take ${n.dtype}`;
  return sameLanes(n);
}

function sameLanes(n: KNode): string | null {
  for (const s of n.src) if (s.lanes !== n.lanes) return `has ${n.lanes} lanes but a source has ${s.lanes}`;
  return null;
}

function bindsRanges(n: KNode): string | null {
  if (n.src.length < 2) return 'binds no range';
  return n.src.every((s, i) => i === 0 || s.op === 'RANGE') ? null : 'takes a value and ranges';
}

/** Rules of LOAD, STORE and ATOMIC, and indices that cannot be right. */
function accessError(n: KNode, lanes: number): string | null {
  const [mem, index, value] = n.src;
  const gate = n.op === 'LOAD' ? n.src[2] : n.src[3];
  if (!isIndex(index)) return `index must be an int32 scalar: got ${index.dtype} x ${index.lanes}`;
  if (gate !== undefined && (gate.dtype !== 'bool' || gate.lanes !== 1))
    return `gate must be a bool scalar: got ${gate.dtype} x ${gate.lanes}`;
  if (n.op === 'LOAD') {
    const alt = n.src[3];
    if (n.dtype !== mem.dtype) return `of ${mem.dtype} cannot be ${n.dtype}`;
    if (gate !== undefined && alt === undefined) return 'with a gate needs an alternative';
    if (alt !== undefined && (alt.dtype !== n.dtype || alt.lanes !== lanes))
      return `has ${lanes} lanes but its alternative ${alt.dtype} x ${alt.lanes}`;
  } else if (value?.dtype !== mem.dtype) return `stores ${value?.dtype} to ${mem.dtype}`;
  if (mem.op === 'PARAM' && mem.arg.length === 0) return null; // in a loop that never runs
  if (mem.op === 'PARAM') {
    if (n.op !== 'LOAD' && mem.arg.access === 'read') return 'writes a parameter that is only read';
    if (n.op === 'LOAD' && mem.arg.access === 'write') return 'reads a parameter that is only written';
    return gate === undefined ? outOfRange(index, mem.arg.length - lanes) : null;
  }
  if (mem.op === 'SHARED') return gate === undefined ? outOfRange(index, mem.arg.length - lanes) : null;
  if (mem.op === 'REG') {
    if (index.op !== 'CONST') return 'of registers needs a constant index';
    return lanes === mem.lanes
      ? outOfRange(index, mem.arg.length - 1)
      : `of registers of ${mem.lanes} lanes has ${lanes}`;
  }
  return mem.op === 'STAGE' ? null : `${mem.op} is no memory`;
}

function outOfRange(index: KNode, last: number): string | null {
  const [low, high] = [lowOf(index), highOf(index)];
  return low > last || high < 0 ? `index is in ${low} .. ${high}, allowed is 0 .. ${last}` : null;
}
