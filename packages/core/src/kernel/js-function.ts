/**
 * For tests: a pure expression of one variable or two as a JavaScript function, fast enough for sweeps over millions of
 * arguments. Prints BASE_OPS only; what a program means is defined by interpret.ts.
 */
import type { DType } from '../shape/dtype.ts';
import type { KNode } from './ir.ts';

const infix: Readonly<Record<string, string>> = {
  ADD: '+',
  SUB: '-',
  MUL: '*',
  DIV: '/',
  AND: '&',
  OR: '|',
  XOR: '^',
  SHL: '<<',
  LT: '<',
  LE: '<=',
};
const shared =
  'const buf = new ArrayBuffer(8), bf = new Float32Array(buf), bi = new Int32Array(buf), bu = new Uint32Array(buf);';

/** The function of the variables (any leaf nodes), in order. */
export function toJsFunction(root: KNode, variables: readonly KNode[]): (...xs: number[]) => number {
  const names = new Map<KNode, string>(variables.map((v, i) => [v, `x${i}`]));
  const lines: string[] = [];
  const stack = [root];
  while (stack.length > 0) {
    const n = stack[stack.length - 1] as KNode;
    const pending = names.has(n) ? [] : n.src.filter((s) => !names.has(s));
    if (pending.length > 0) {
      stack.push(...pending);
      continue;
    }
    stack.pop();
    if (names.has(n)) continue;
    const name = `v${lines.length}`;
    lines.push(
      `const ${name} = ${expression(
        n,
        n.src.map((s) => names.get(s) as string),
      )};`,
    );
    names.set(n, name);
  }
  const args = variables.map((_, i) => `x${i}`).join(', ');
  return new Function(`${shared} return (${args}) => { ${lines.join('\n')} return ${names.get(root)}; };`)();
}

function expression(n: KNode, [a, b, c]: string[]): string {
  const dtype = n.dtype as DType;
  const from = n.src[0]?.dtype;
  switch (n.op) {
    case 'CONST':
      return Object.is(n.arg.value, -0) ? '-0' : String(n.arg.value);
    case 'NEG':
      return rounded(dtype, `-${a}`);
    case 'NOT':
      return dtype === 'bool' ? `(${a} ? 0 : 1)` : rounded(dtype, `~${a}`);
    case 'SQRT':
      return rounded(dtype, `Math.sqrt(${a})`);
    case 'FLOOR':
      return `Math.floor(${a})`;
    case 'MAX':
      return `Math.max(${a}, ${b})`;
    case 'MIN':
      return `Math.min(${a}, ${b})`;
    case 'IDIV':
      return rounded(dtype, `Math.trunc(${a} / ${b})`);
    case 'IREM':
      return rounded(dtype, `(${a} % ${b})`);
    case 'EQ':
      return `Number(${a} === ${b})`;
    case 'WHERE':
      return `(${a} ? ${b} : ${c})`;
    case 'SHR':
      return dtype === 'uint32' ? `(${a} >>> ${b})` : `(${a} >> ${b})`;
    case 'CAST':
      if (dtype === 'int32' && (from === 'float32' || from === 'float64'))
        return `(Math.max(-2147483648, Math.min(2147483647, Math.trunc(${a}))) | 0)`;
      return rounded(dtype, a as string);
    case 'BITCAST':
      return `(${view(from as DType)}[0] = ${a}, ${view(dtype)}[0])`;
    case 'MUL':
      if (dtype === 'int32' || dtype === 'uint32') return rounded(dtype, `Math.imul(${a}, ${b})`);
      return rounded(dtype, `${a} * ${b}`);
    default: {
      const sign = infix[n.op];
      if (!sign) throw new Error(`[toJsFunction] ${n.op} is no base operation`);
      return n.op === 'LT' || n.op === 'LE' ? `Number(${a} ${sign} ${b})` : rounded(dtype, `(${a} ${sign} ${b})`);
    }
  }
}

function rounded(dtype: DType, text: string): string {
  if (dtype === 'float32') return `Math.fround(${text})`;
  if (dtype === 'int32') return `(${text} | 0)`;
  if (dtype === 'uint32') return `(${text} >>> 0)`;
  return text;
}

function view(dtype: DType): string {
  return dtype === 'float32' ? 'bf' : dtype === 'uint32' ? 'bu' : 'bi';
}
