/**
 * Entries of the cache: what a plan is for, and its bytes, with a hash of both.
 *
 * A plan is for a cone or for a class of its sizes: the integers of that, the primitives that they number, and a context (context.ts).
 */
import { definitionAt } from '../graph/definition.ts';
import type { Cone } from '../planner/capture/cone.ts';
import type { SizedCone } from '../planner/capture/plan-graph.ts';
import { ByteReader, ByteWriter, check, Damaged } from './bytes.ts';

/** A plan that was read, or is to be written. */
export interface Entry {
  readonly context: string;
  readonly hash: number;
  readonly key: Int32Array;
  /** Ids of primitives with their names, because ids depend on what a program imports. */
  readonly primitives: readonly (readonly [id: number, name: string])[];
  readonly plan: Uint8Array;
}

/** The integers that identify what a plan is for: the first `length` of `data`. */
export interface Signature {
  readonly hash: number;
  readonly data: Int32Array;
  readonly length: number;
}

/** The signature for a cone, or for a class of its sizes. */
export function signatureOf(cone: Cone, sized: SizedCone | null): Signature {
  if (sized === null) return { hash: cone.key.hash, data: cone.key.data, length: cone.key.length };
  const data = sized.key();
  let hash = data.length;
  for (const x of data) {
    hash = Math.imul(hash ^ x, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return { hash, data, length: data.length };
}

/** The identity of an entry, as it is kept. */
export function keyOf(context: string, cone: Cone, { hash, data, length }: Signature): Omit<Entry, 'plan'> {
  const primitives = new Map<number, string>();
  for (let i = 0; i < cone.count; i++) {
    const { kind, op } = cone.nodes[i]!;
    primitives.set(kind, op);
  }
  return { context, hash, key: data.slice(0, length), primitives: [...primitives] };
}

/** True if the entry is for this signature. */
export function isFor({ context, key, primitives }: Entry, own: string, { data, length }: Signature): boolean {
  if (context !== own) return false;
  if (key.length !== length) return false;
  for (let i = 0; i < length; i++) if (key[i] !== data[i]) return false;
  return primitives.every(([id, name]) => definitionAt(id)?.op === name);
}

/** Prefix of the names, after the version, of entries for a context and the hash of a signature. Different signatures rarely share it. */
export function placeOf(context: string, hash: number): string {
  let a = 0x811c9dc5;
  let b = context.length;
  for (let i = 0; i < context.length; i++) {
    const code = context.charCodeAt(i);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b);
    b ^= b >>> 13;
  }
  return `${hex32(a)}${hex32(b)}-${hex32(hash)}-`;
}

const hex32 = (x: number): string => (x >>> 0).toString(16).padStart(8, '0');

const magic = new TextEncoder().encode('PGPLAN1\n');
const hashBytes = 32;
const bodyAt: number = magic.length + hashBytes;

/** SHA-256. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
}

/** An entry as the bytes of a file. */
export async function seal({ context, hash, key, primitives, plan }: Entry): Promise<Uint8Array<ArrayBuffer>> {
  const out = new ByteWriter();
  out.text(context);
  out.int(hash);
  out.bytes(new Uint8Array(key.buffer, key.byteOffset, key.byteLength));
  out.uint(primitives.length);
  for (const [id, name] of primitives) {
    out.uint(id);
    out.text(name);
  }
  out.raw(plan);
  const body = out.take();
  const file = new Uint8Array(bodyAt + body.length);
  file.set(magic);
  file.set(await sha256(body), magic.length);
  file.set(body, bodyAt);
  return file;
}

/** The bytes of a file behind its hash, or null for other files. */
function bodyOf(file: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | null {
  return file.length <= bodyAt || magic.some((byte, i) => file[i] !== byte) ? null : file.subarray(bodyAt);
}

/** The entry of a file, or null for one that is incomplete or something else. */
export async function unseal(file: Uint8Array<ArrayBuffer>): Promise<Entry | null> {
  const body = bodyOf(file);
  return body === null ? null : entryOf(file, body, await sha256(body));
}

/** The same, synchronously. */
export function unsealNow(file: Uint8Array<ArrayBuffer>, hash: (bytes: Uint8Array) => Uint8Array): Entry | null {
  const body = bodyOf(file);
  return body === null ? null : entryOf(file, body, hash(body));
}

function entryOf(file: Uint8Array, body: Uint8Array, found: Uint8Array): Entry | null {
  if (found.some((byte, i) => file[magic.length + i] !== byte)) return null;
  try {
    const from = new ByteReader(body);
    const context = from.text();
    const hash = from.int();
    const ints = from.bytes();
    check(ints.length % 4 === 0, 'a key');
    const key = new Int32Array(new Uint8Array(ints).buffer);
    const primitives = from.list((): [number, string] => [from.uint(), from.text()]);
    return { context, hash, key, primitives, plan: from.rest() };
  } catch (error) {
    if (error instanceof Damaged) return null;
    throw error;
  }
}
