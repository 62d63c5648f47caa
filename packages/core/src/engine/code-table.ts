/** The compiled code that a processor engine holds, by the content of its programs. */
import { type PackedProgram, sameCode } from '@polygrad/compiler/ir/packed';

/**
 * Code by the hash of its program; equal programs share it, whatever their names.
 *
 * @example
 * const program = packProgram(randomProgram(1).program);
 * const table = new CodeTable<{ program: PackedProgram }>();
 * table.add({ program });
 * table.find(program)?.program === program; // true
 */
export class CodeTable<Code extends { readonly program: PackedProgram }> {
  readonly #byHash = new Map<number, Code[]>();

  /** The code of an equal program, or undefined. */
  find(program: PackedProgram): Code | undefined {
    return this.#byHash.get(program.hash)?.find((c) => sameCode(c.program, program));
  }

  add(code: Code): void {
    const { hash } = code.program;
    const list = this.#byHash.get(hash);
    if (list === undefined) this.#byHash.set(hash, [code]);
    else list.push(code);
  }

  remove(code: Code): void {
    const { hash } = code.program;
    const rest = (this.#byHash.get(hash) ?? []).filter((c) => c !== code);
    if (rest.length > 0) this.#byHash.set(hash, rest);
    else this.#byHash.delete(hash);
  }

  clear(): void {
    this.#byHash.clear();
  }
}
