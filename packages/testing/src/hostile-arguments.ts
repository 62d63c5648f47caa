/**
 * Arguments made to break what looks at them. There are objects that throw when they become text or a number, proxies that are revoked, lists without
 * end, names of millions of letters. For tests of what functions do with anything at all.
 */

/**
 * Thrown where an object of these is asked for a text, a number or a property that it does not give.
 *
 * @example
 * new HostileError('touched') instanceof Error; // true
 */
export class HostileError extends Error {
  override readonly name: string = 'HostileError';
}

const refuse = (): never => {
  throw new HostileError('a hostile object was touched');
};

function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** A list that holds itself, one nested very deeply, and one with many paths through it. */
function endless(): [cyclic: unknown[], deep: unknown[], branching: unknown[]] {
  const cyclic: unknown[] = [];
  cyclic.push(cyclic, cyclic);
  let deep: unknown[] = [1];
  for (let i = 0; i < 20_000; i++) deep = [deep];
  let branching: unknown[] = [1];
  for (let i = 0; i < 60; i++) branching = [branching, branching];
  return [cyclic, deep, branching];
}

/**
 * Hostile arguments and their names.
 *
 * @example
 * hostileArguments().length > 10; // true
 */
export function hostileArguments(): readonly (readonly [text: string, value: unknown])[] {
  const untold = { toString: refuse, valueOf: refuse, toJSON: refuse, [Symbol.toPrimitive]: refuse };
  const [cyclic, deep, branching] = endless();
  const knot: { axis?: unknown } = {};
  knot.axis = knot;
  let bush: object = { axis: 1 };
  for (let i = 0; i < 60; i++) bush = { axis: bush, dtype: bush };
  const closed = new Proxy({}, { get: refuse, has: refuse, ownKeys: refuse, getPrototypeOf: refuse });
  return [
    ['a symbol', Symbol('hostile')],
    ['an object without a text', untold],
    ['a list of objects without a text', [untold, untold]],
    ['a list of symbols', [Symbol('a'), Symbol('b')]],
    ['an object without a prototype', Object.create(null)],
    ['a revoked proxy', revoked({})],
    ['a revoked proxy of a list', revoked([])],
    ['a list of revoked proxies', [revoked({}), revoked([])]],
    ['a proxy that throws', closed],
    ['a list that holds itself', cyclic],
    ['an object that holds itself', knot],
    ['a list of 20,000 levels', deep],
    ['a list of 2^60 paths', branching],
    ['an object of 2^60 paths', bush],
    ['a list of gaps', new Array(3)],
    ['the longest list', new Array(2 ** 32 - 1)],
    ['a length without elements', { length: 2 ** 53 }],
    ['a bigint of 30,000 digits', 10n ** 30_000n],
    ['a list of a bigint', [1n]],
    ['a text of a million letters', 'x'.repeat(1e6)],
    ['a number object', Object(2)],
    ['a class', class Foo {}],
  ];
}

/**
 * Objects that are no options, though `typeof` says object.
 *
 * @example
 * strangeOptions().map(([text]) => text); // ['a Map', 'a Date', 'a RegExp', 'a Set', 'an instance', 'a typed array']
 */
export function strangeOptions(): readonly (readonly [text: string, value: unknown])[] {
  return [
    ['a Map', new Map()],
    ['a Date', new Date(0)],
    ['a RegExp', /x/],
    ['a Set', new Set()],
    ['an instance', new (class Settings {})()],
    ['a typed array', new Float32Array(1)],
  ];
}
