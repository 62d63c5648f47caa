/**
 * The compiled functions an engine holds, found again by what their programs compute.
 */
import type { Program } from '@polygrad/core/kernel';
import type { Code } from './kernel.ts';
import { hashProgram, sameCode } from './program-key.ts';

export class CodeTable {
  readonly #byHash = new Map<number, Code[]>();
  /** Shortcut for programs that are compiled again as the same object. */
  #byProgram = new WeakMap<Program, Code>();

  /** The code of an equal program, or undefined. */
  find(program: Program): Code | undefined {
    const known = this.#byProgram.get(program);
    if (known !== undefined && known.users > 0) return known;
    const found = this.#byHash.get(hashProgram(program))?.find((c) => sameCode(c.program, program));
    if (found !== undefined) this.#byProgram.set(program, found);
    return found;
  }

  add(code: Code): void {
    const hash = hashProgram(code.program);
    const list = this.#byHash.get(hash);
    if (list === undefined) this.#byHash.set(hash, [code]);
    else list.push(code);
    this.#byProgram.set(code.program, code);
  }

  remove(code: Code): void {
    const hash = hashProgram(code.program);
    const rest = (this.#byHash.get(hash) ?? []).filter((c) => c !== code);
    if (rest.length > 0) this.#byHash.set(hash, rest);
    else this.#byHash.delete(hash);
  }

  clear(): void {
    this.#byHash.clear();
    this.#byProgram = new WeakMap();
  }
}
