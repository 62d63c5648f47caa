/**
 * Reads Python's pickles without running anything: a pickle is a program that calls functions by name, and the caller says which few names mean what.
 * All others are refused. Source: Python's `pickletools`, protocols 2 to 5.
 */
import { DataError, shown } from '../errors.ts';

/** A name of a module: a class or a function, which is never called. */
export class PickleGlobal {
  /** With its module: `torch._utils._rebuild_tensor_v2`. */
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** What a pickle holds. Tuples and sets are lists, dictionaries maps; `object` is what the rules made. */
export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | PickleValue[]
  | Map<PickleValue, PickleValue>
  | object;

/** What names and references of a pickle mean. Each throws for those it does not know. */
export interface PickleRules {
  /** The result of a function or class by its name. */
  readonly call: (name: string, args: readonly PickleValue[]) => PickleValue;
  /** What a reference to something outside of the pickle stands for. */
  readonly outside: (reference: PickleValue) => PickleValue;
}

/** Stands on the stack where a list of arguments begins. */
const mark = Symbol('mark');

/** Most values a pickle may make: a file of weights has some thousands. */
const mostValues = 2 ** 24;

const latin = (bytes: Uint8Array): string => new TextDecoder('latin1').decode(bytes);

/** One pickle after another in some bytes: `read` gives the next, and `at` is where it ended. */
export class PickleReader {
  at: number;
  readonly #op: string;
  readonly #bytes: Uint8Array;
  readonly #source: string;
  readonly #view: DataView;
  readonly #rules: PickleRules;
  #stack: (PickleValue | typeof mark)[] = [];
  #memo = new Map<number, PickleValue>();
  #made = 0;

  constructor(op: string, bytes: Uint8Array, source: string, rules: PickleRules, at = 0) {
    this.#op = op;
    this.#bytes = bytes;
    this.#source = source;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#rules = rules;
    this.at = at;
  }

  #fail(what: string): DataError {
    return new DataError(
      'format',
      this.#source,
      `[${this.#op}] ${this.#source} is damaged: ${what}; get the file again`,
    );
  }

  /** The place of the next `length` bytes, which are passed over. */
  #next(length: number): number {
    const at = this.at;
    if (length < 0 || at + length > this.#bytes.length)
      throw new DataError(
        'truncated',
        this.#source,
        `[${this.#op}] ${this.#source} is truncated: it ends at byte ${this.#bytes.length}, and ${length} bytes more are asked for at byte ${at}; get the file again`,
      );
    this.at = at + length;
    return at;
  }

  #part(length: number): Uint8Array {
    const at = this.#next(length);
    return this.#bytes.subarray(at, at + length);
  }

  #u8 = (): number => this.#view.getUint8(this.#next(1));
  #u16 = (): number => this.#view.getUint16(this.#next(2), true);
  #u32 = (): number => this.#view.getUint32(this.#next(4), true);
  #i32 = (): number => this.#view.getInt32(this.#next(4), true);
  #u64 = (): number => Number(this.#view.getBigUint64(this.#next(8), true));

  #text(length: number): string {
    return new TextDecoder().decode(this.#part(length));
  }

  #line(): string {
    const end = this.#bytes.indexOf(10, this.at);
    if (end < 0) throw this.#fail('a name has no end');
    const line = this.#text(end - this.at);
    this.at++;
    return line;
  }

  /** A whole number of any length, the lowest byte first. */
  #long(length: number): number | bigint {
    const bytes = this.#part(length);
    if (length > 64) throw this.#fail(`a number has ${length} bytes`);
    let value = 0n;
    for (let i = length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i]!);
    value = BigInt.asIntN(8 * length, value);
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }

  #push(value: PickleValue | typeof mark): void {
    if (++this.#made > mostValues) throw this.#fail(`it makes more than ${mostValues} values`);
    this.#stack.push(value);
  }

  #pop(): PickleValue {
    const value = this.#stack.pop();
    if (value === undefined || value === mark) throw this.#fail(`a value is missing at byte ${this.at}`);
    return value;
  }

  #top(): PickleValue {
    const value = this.#pop();
    this.#stack.push(value);
    return value;
  }

  /** The values since the last mark, which goes too. */
  #sinceMark(): PickleValue[] {
    const from = this.#stack.lastIndexOf(mark);
    if (from < 0) throw this.#fail(`a list has no beginning at byte ${this.at}`);
    return this.#stack.splice(from).slice(1) as PickleValue[];
  }

  #tuple(length: number): void {
    const values = Array.from({ length }, () => this.#pop());
    this.#push(values.reverse());
  }

  #append(values: readonly PickleValue[]): void {
    const list = this.#top();
    if (!Array.isArray(list)) throw this.#fail('values are added to what is no list');
    for (const value of values) list.push(value);
  }

  #set(values: readonly PickleValue[]): void {
    const map = this.#top();
    if (!(map instanceof Map)) throw this.#fail('names are set of what is no dictionary');
    for (let i = 0; i + 1 < values.length; i += 2) map.set(values[i]!, values[i + 1]!);
  }

  #remember(place: number): void {
    this.#memo.set(place, this.#top());
  }

  #recall(place: number): void {
    const value = this.#memo.get(place);
    if (value === undefined) throw this.#fail(`value ${place} is not there yet`);
    this.#push(value);
  }

  #call(): void {
    const args = this.#pop();
    const callee = this.#pop();
    if (!(callee instanceof PickleGlobal) || !Array.isArray(args)) throw this.#fail('what is called is no function');
    this.#push(this.#rules.call(callee.name, args));
  }

  #global(module: PickleValue, name: PickleValue): void {
    if (typeof module !== 'string' || typeof name !== 'string') throw this.#fail('a name is no text');
    this.#push(new PickleGlobal(`${module}.${name}`));
  }

  /** Attributes of an object. Those of dictionaries (PyTorch's versions of modules) mean nothing here. */
  #build(): void {
    this.#pop();
    const target = this.#top();
    if (!(target instanceof Map)) throw this.#fail(`attributes are set of ${shown(target)}`);
  }

  /** What each code does, by the codes of `pickletools`. */
  readonly #steps: Readonly<Record<string, () => unknown>> = {
    '\x80': () => this.#u8(), // PROTO
    '\x95': () => this.#u64(), // FRAME
    '(': () => this.#push(mark),
    '0': () => this.#stack.pop(), // a mark too
    '1': () => this.#sinceMark(), // POP_MARK
    '2': () => this.#push(this.#top()), // DUP
    N: () => this.#push(null),
    '\x88': () => this.#push(true),
    '\x89': () => this.#push(false),
    J: () => this.#push(this.#i32()),
    K: () => this.#push(this.#u8()),
    M: () => this.#push(this.#u16()),
    '\x8a': () => this.#push(this.#long(this.#u8())),
    '\x8b': () => this.#push(this.#long(this.#i32())),
    G: () => this.#push(this.#view.getFloat64(this.#next(8))),
    X: () => this.#push(this.#text(this.#u32())),
    '\x8c': () => this.#push(this.#text(this.#u8())),
    '\x8d': () => this.#push(this.#text(this.#u64())),
    T: () => this.#push(latin(this.#part(this.#i32()))), // texts of Python 2
    U: () => this.#push(latin(this.#part(this.#u8()))),
    B: () => this.#push(this.#part(this.#u32())),
    C: () => this.#push(this.#part(this.#u8())),
    ']': () => this.#push([]),
    '\x8f': () => this.#push([]), // EMPTY_SET
    ')': () => this.#push([]),
    '}': () => this.#push(new Map()),
    t: () => this.#push(this.#sinceMark()),
    l: () => this.#push(this.#sinceMark()),
    '\x91': () => this.#push(this.#sinceMark()), // FROZENSET
    '\x85': () => this.#tuple(1),
    '\x86': () => this.#tuple(2),
    '\x87': () => this.#tuple(3),
    a: () => this.#append([this.#pop()]),
    e: () => this.#append(this.#sinceMark()),
    '\x90': () => this.#append(this.#sinceMark()), // ADDITEMS
    s: () => {
      const value = this.#pop();
      this.#set([this.#pop(), value]);
    },
    u: () => this.#set(this.#sinceMark()),
    q: () => this.#remember(this.#u8()),
    r: () => this.#remember(this.#u32()),
    '\x94': () => this.#remember(this.#memo.size), // MEMOIZE
    h: () => this.#recall(this.#u8()),
    j: () => this.#recall(this.#u32()),
    c: () => this.#global(this.#line(), this.#line()),
    '\x93': () => {
      const name = this.#pop();
      this.#global(this.#pop(), name);
    },
    R: () => this.#call(), // REDUCE
    '\x81': () => this.#call(), // NEWOBJ
    b: () => this.#build(),
    Q: () => this.#push(this.#rules.outside(this.#pop())),
  };

  /** The next pickle. */
  read(): PickleValue {
    this.#stack = [];
    this.#memo = new Map();
    for (let code = this.#u8(); code !== 0x2e; code = this.#u8()) {
      const step = this.#steps[String.fromCharCode(code)];
      if (step === undefined)
        throw this.#fail(`code ${code} at byte ${this.at - 1} is none of those that weights are written in`);
      step();
    }
    return this.#pop();
  }
}
