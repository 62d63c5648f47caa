/** Values of elementwise primitives by definition, for graph-values.ts: functions of numbers. */

function roundHalfEven(x: number): number {
  const down = Math.floor(x);
  if (x - down !== 0.5) return Math.round(x);
  return down % 2 === 0 ? down : down + 1;
}

/** The error function by its series and its continued fraction, to about 1e-15. */
function erf(x: number): number {
  const a = Math.abs(x);
  if (a > 6) return Math.sign(x);
  if (a < 2.5) {
    let term = a;
    let sum = a;
    for (let n = 1; n < 80; n++) {
      term *= (-a * a) / n;
      sum += term / (2 * n + 1);
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let f = 0;
  for (let n = 120; n > 0; n--) f = n / 2 / (a + f);
  return Math.sign(x) * (1 - Math.exp(-a * a) / Math.sqrt(Math.PI) / (a + f));
}

/** NaN if either is NaN. */
export function bothNaN(fn: (a: number, b: number) => number): (a: number, b: number) => number {
  return (a, b) => (Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : fn(a, b));
}

export const elementwise: { readonly [name: string]: (...xs: number[]) => number } = {
  neg: (x = 0) => -x,
  not: (x = 0) => ~x,
  abs: Math.abs as (...xs: number[]) => number,
  sign: (x = 0) => (Number.isNaN(x) ? x : Math.sign(x)),
  sqrt: (x = 0) => Math.sqrt(x),
  rsqrt: (x = 0) => 1 / Math.sqrt(x),
  reciprocal: (x = 0) => 1 / x,
  floor: (x = 0) => Math.floor(x),
  ceil: (x = 0) => Math.ceil(x),
  trunc: (x = 0) => Math.trunc(x),
  round: (x = 0) => roundHalfEven(x),
  exp: (x = 0) => Math.exp(x),
  exp2: (x = 0) => 2 ** x,
  expm1: (x = 0) => Math.expm1(x),
  log: (x = 0) => Math.log(x),
  log2: (x = 0) => Math.log2(x),
  log10: (x = 0) => Math.log10(x),
  log1p: (x = 0) => Math.log1p(x),
  sin: (x = 0) => Math.sin(x),
  cos: (x = 0) => Math.cos(x),
  tan: (x = 0) => Math.tan(x),
  asin: (x = 0) => Math.asin(x),
  acos: (x = 0) => Math.acos(x),
  atan: (x = 0) => Math.atan(x),
  sinh: (x = 0) => Math.sinh(x),
  cosh: (x = 0) => Math.cosh(x),
  tanh: (x = 0) => Math.tanh(x),
  erf: (x = 0) => erf(x),
  isNaN: (x = 0) => Number(Number.isNaN(x)),
  add: (a = 0, b = 0) => a + b,
  sub: (a = 0, b = 0) => a - b,
  mul: (a = 0, b = 0) => a * b,
  div: (a = 0, b = 0) => a / b,
  idiv: (a = 0, b = 0) => (b === 0 ? 0 : Math.trunc(a / b)),
  irem: (a = 0, b = 0) => (b === 0 ? 0 : a % b),
  fmod: (a = 0, b = 0) => a % b,
  pow: (a = 0, b = 0) => (a === 1 ? 1 : a ** b),
  atan2: (a = 0, b = 0) => Math.atan2(a, b),
  maximum: bothNaN(Math.max) as (...xs: number[]) => number,
  minimum: bothNaN(Math.min) as (...xs: number[]) => number,
  and: (a = 0, b = 0) => a & b,
  or: (a = 0, b = 0) => a | b,
  xor: (a = 0, b = 0) => a ^ b,
  shl: (a = 0, b = 0) => a << b,
  shr: (a = 0, b = 0) => a >> b,
  lt: (a = 0, b = 0) => Number(a < b),
  le: (a = 0, b = 0) => Number(a <= b),
  eq: (a = 0, b = 0) => Number(a === b),
  where: (c = 0, a = 0, b = 0) => (c !== 0 ? a : b),
  fma: (a = 0, b = 0, c = 0) => a * b + c,
};
