/**
 * Entries of the cache: what a plan is for, and its bytes, with a hash of both.
 *
 * A plan is for a signature, that of a captured graph or of a class of its sizes, in a context (context.ts).
 */
import { definitionAt } from '../graph/definition.ts';
import { intsPerAxis, IntWriter } from '../planner/capture/cache.ts';
import type { CapturedGraph } from '../planner/capture/captured-graph.ts';
import type { SizedGraph } from '../planner/capture/plan-graph.ts';
import { ByteReader, ByteWriter, check, Damaged } from './bytes.ts';

/**
 * What a plan is for: integers that mean the same in every process. `primitives` are the names of those that occur, and the integers have their
 * places in that list: the numbers of primitives depend on what a program imports.
 */
export interface Signature {
  readonly hash: number;
  readonly key: Int32Array;
  readonly primitives: readonly string[];
}

/** A plan that was read, or is to be written. */
export interface Entry extends Signature {
  readonly context: string;
  readonly plan: Uint8Array;
}

const attributes = new IntWriter();
/** Bits of a primitive's number in the first integer of a node (planner/capture/captured-graph.ts). */
const kindMask = 0xff;

/** The signature for a captured graph, or for a class of its sizes: both have the same integers at the same places of nodes. */
export function signatureOf(captured: CapturedGraph, sized: SizedGraph | null): Signature {
  const key = sized === null ? captured.key.data.slice(0, captured.key.length) : sized.key();
  const primitives: string[] = [];
  const numbers = new Map<number, number>();
  let at = 0;
  for (let i = 0; i < captured.count; i++) {
    const { kind, op, attr, shape, src, storage } = captured.nodes[i]!;
    if (storage !== null) {
      // A leaf: dtype, rank, shape, strides, buffer, alignment.
      at += 4 + 2 * shape.length;
      continue;
    }
    if (!numbers.has(kind)) numbers.set(kind, primitives.push(op) - 1);
    key[at] = (key[at]! & ~kindMask) | numbers.get(kind)!;
    attributes.length = 0;
    attributes.reserve(shape.length * intsPerAxis + src.length + 64);
    (definitionAt(kind).encode as ((attr: unknown, out: IntWriter) => void) | null | undefined)?.(attr, attributes);
    at += 1 + attributes.length + (src.length || 1 + shape.length);
  }
  let hash = key.length;
  for (const x of key) {
    hash = Math.imul(hash ^ x, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return { hash, key, primitives };
}

/** True if the entry is for this signature in this context. */
export function isFor(entry: Omit<Entry, 'plan'>, context: string, { key, primitives }: Signature): boolean {
  return (
    entry.context === context &&
    entry.key.length === key.length &&
    entry.key.every((x, i) => x === key[i]) &&
    entry.primitives.join() === primitives.join()
  );
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

/** What a file of a program's own plans begins with (plan-file.ts). */
export const planFileMagic: Uint8Array<ArrayBuffer> = new TextEncoder().encode('PGPLANS\n');

/** A file: what files of its kind begin with, the hash of the rest, the rest. */
export async function sealed(
  magic: Uint8Array<ArrayBuffer>,
  body: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const file = new Uint8Array(bodyAt + body.length);
  file.set(magic);
  file.set(await sha256(body), magic.length);
  file.set(body, bodyAt);
  return file;
}

/** The bytes of a file behind its hash, or null for files of another kind. */
export function bodyOf(file: Uint8Array<ArrayBuffer>, magic: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | null {
  return file.length <= bodyAt || magic.some((byte, i) => file[i] !== byte) ? null : file.subarray(bodyAt);
}

/** An entry as the bytes of a file. */
export function seal({ context, hash, key, primitives, plan }: Entry): Promise<Uint8Array<ArrayBuffer>> {
  const out = new ByteWriter();
  out.text(context);
  out.int(hash);
  out.bytes(new Uint8Array(key.buffer, key.byteOffset, key.byteLength));
  out.list(primitives, (name) => out.text(name));
  out.raw(plan);
  return sealed(magic, out.take());
}

/** The entry of a file, or null for one that is incomplete or something else. */
export async function unseal(file: Uint8Array<ArrayBuffer>): Promise<Entry | null> {
  const body = bodyOf(file, magic);
  return body === null ? null : entryOf(file, body, await sha256(body));
}

/** The same, synchronously. */
export function unsealNow(file: Uint8Array<ArrayBuffer>, hash: (bytes: Uint8Array) => Uint8Array): Entry | null {
  const body = bodyOf(file, magic);
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
    const primitives = from.list(() => from.text());
    return { context, hash, key, primitives, plan: from.rest() };
  } catch (error) {
    if (error instanceof Damaged) return null;
    throw error;
  }
}
