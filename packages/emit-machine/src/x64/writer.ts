/** The bytes of a function of x86-64: its entry and end in the calling convention of System V. */
import {
  type Assigned,
  type Condition,
  type MemoryPlace,
  parameterOffset,
  type Place,
  type Row as AnyRow,
} from '../form/code.ts';
import type { Writer } from '../form/machine.ts';
import { Assembler } from './encode.ts';
import { Flags } from './flags.ts';
import { type Row, rowOf } from './rows.ts';
import { instructionText } from './text.ts';

const [rax, rsp] = [0, 4];
/** The least page of a stack. */
const stackPage = 4096;
/** Registers that a function leaves as they were. */
const preserved = [3, 5, 12, 13, 14, 15];
/** Registers of the four parameters. */
const parameters = [
  [7, parameterOffset.args],
  [6, parameterOffset.from],
  [2, parameterOffset.to],
  [1, parameterOffset.scratch],
] as const;

const stack = (offset: number): MemoryPlace => ({ base: rsp, index: -1, scale: 1, offset });

export class X64Writer implements Writer {
  readonly #assembler = new Assembler();
  readonly #flags = new Flags();
  readonly #lines: string[] | null;
  readonly #frameBytes: number;
  readonly #saved: readonly number[];

  constructor({ frameBytes, general }: Assigned, lines: string[] | null) {
    this.#lines = lines;
    this.#frameBytes = frameBytes;
    this.#saved = preserved.filter((r) => general.has(r));
  }

  instruction(given: AnyRow, size: number, places: readonly Place[], mask: number, zero: boolean): void {
    const row = given as Row;
    if (this.#flags.pass(row, size, places)) return;
    this.#lines?.push(`    ${instructionText(row, size, places, mask, zero)}`);
    this.#assembler.emit(row, size, places, mask, zero);
  }

  #emit(key: string, size: number, places: readonly Place[]): void {
    this.instruction(rowOf(key), size, places, 0, false);
  }

  enter(): void {
    const frameBytes = this.#frameBytes;
    for (const r of this.#saved) this.#emit('push', 8, [r]);
    this.#emit('mov', 8, [rax, rsp]);
    // Windows gives a stack its next page where the one above was touched.
    for (let below = stackPage; frameBytes + 128 > below; below += stackPage)
      this.#emit('mov:store', 8, [stack(-below), rax]);
    this.#emit('sub:constant', 8, [rsp, frameBytes + 64]);
    this.#emit('and:constant', 8, [rsp, -64]);
    this.#emit('mov:store', 8, [stack(frameBytes), rax]);
    for (const [r, offset] of parameters) this.#emit('mov:store', 8, [stack(offset), r]);
  }

  label(): number {
    return this.#assembler.label();
  }

  bind(label: number, loop: boolean): void {
    this.#flags.forget();
    if (loop) this.#assembler.align(16);
    this.#lines?.push(`L${label}:`);
    this.#assembler.bind(label);
  }

  jump(label: number, condition: Condition | null): void {
    this.#lines?.push(`    ${condition === null ? 'jmp' : `j${condition}`} L${label}`);
    this.#assembler.jump(label, condition);
  }

  result(code: number): void {
    if (code === 0) this.#emit('xor', 4, [rax, rax]);
    else this.#emit('mov:constant', 4, [rax, code]);
  }

  leave(): void {
    this.#emit('mov', 8, [rsp, stack(this.#frameBytes)]);
    for (const r of this.#saved.toReversed()) this.#emit('pop', 8, [r]);
    this.#emit('vzeroupper', 16, []);
    this.#emit('ret', 8, []);
  }

  finish(constants: Uint8Array): Uint8Array<ArrayBuffer> {
    return this.#assembler.finish(constants);
  }
}
