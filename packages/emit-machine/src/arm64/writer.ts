/**
 * The bytes of an arm64 function: prologue and epilogue by the procedure call standard, and constants of any size. Also memory beyond the offset
 * range of an instruction, by registers 16 and 17.
 */
import {
  type Assigned,
  type Condition,
  type MemoryPlace,
  parameterOffset,
  type Place,
  poolBase,
  type Row as AnyRow,
} from '../form/code.ts';
import type { Writer } from '../form/machine.ts';
import { refuse } from '../target.ts';
import { Assembler, holdsOffset } from './encode.ts';
import { conditions, type Row, rowOf } from './rows.ts';
import { conditionNames, instructionText } from './text.ts';

const stackPointer = 31;
const [address, distance] = [16, 17];

const at = (base: number, offset: number): MemoryPlace => ({ base, index: -1, scale: 1, offset });

/** Most bytes of one item. */
const mostOfItem = 40;
/** Range of conditional jumps and PC-relative constants. */
const nearBytes = 2 ** 20;

export class Arm64Writer implements Writer {
  readonly #assembler = new Assembler();
  readonly #lines: string[] | null;
  /** Callee-saved registers, and where they are saved. */
  readonly #saved: readonly (readonly [key: string, register: number, offset: number])[];
  readonly #bytes: number;
  readonly #far: boolean;

  constructor({ items, frameBytes, general, vectors }: Assigned, constantBytes: number, lines: string[] | null) {
    this.#lines = lines;
    const all = [
      ...[...general].filter((r) => r >= 19 && r <= 28).map((r) => ['x', r] as const),
      ...[...vectors].filter((r) => r >= 8 && r <= 15).map((r) => ['d', r] as const),
    ];
    this.#saved = all.map(([kind, r], i) => [kind, r, frameBytes + i * 8]);
    this.#bytes = frameBytes + Math.ceil(all.length / 2) * 16;
    if (this.#bytes >= 2 ** 24) refuse(`a frame of ${this.#bytes} bytes is more than a function may have`);
    this.#far = items.length * mostOfItem + constantBytes + 4096 > nearBytes;
  }

  #write(key: string, size: number, places: readonly Place[]): void {
    this.#emit(rowOf(key), size, places);
  }

  #emit(row: Row, size: number, places: readonly Place[]): void {
    this.#lines?.push(`    ${instructionText(row, size, places)}`);
    this.#assembler.emit(row, size, places);
  }

  instruction(given: AnyRow, size: number, places: readonly Place[]): void {
    const row = given as Row;
    if (row === constantMove) {
      this.#number(places[0] as number, BigInt(places[1] as number), size);
      return;
    }
    const i = places.findIndex((p) => typeof p === 'object');
    if (i < 0) {
      this.#emit(row, size, places);
      return;
    }
    const place = places[i] as MemoryPlace;
    const near = place.base === poolBase ? this.#constant(row, place, places) : this.#reached(row, place);
    if (near !== null) this.#emit(row, size, places.with(i, near));
  }

  /** Sets a register to any constant. */
  #number(register: number, value: bigint, size: number): void {
    const parts = Array.from({ length: size / 2 }, (_, i) => Number((value >> BigInt(16 * i)) & 0xffffn));
    const inverse = parts.filter((x) => x === 0xffff).length > parts.filter((x) => x === 0).length;
    const usual = inverse ? 0xffff : 0;
    const first = Math.max(
      0,
      parts.findIndex((x) => x !== usual),
    );
    const part = parts[first]!;
    if (inverse) this.#write('mov:inverse', size, [register, part ^ 0xffff, first * 16]);
    else this.#write('mov:wide', size, [register, part, first * 16]);
    for (let i = first + 1; i < parts.length; i++)
      if (parts[i] !== usual) this.#write('movk', size, [register, parts[i]!, i * 16]);
  }

  /** A constant's place: PC-relative, or at an address computed here. Null if only that address was wanted. */
  #constant(row: Row, { offset }: MemoryPlace, places: readonly Place[]): MemoryPlace | null {
    if (!this.#far) return at(poolBase, offset);
    this.#assembler.word(0x10000000 | address);
    this.#assembler.distance(distance, offset);
    this.#lines?.push(`    adr x${address}, .`, `    mov x${distance}, constants+0x${offset.toString(16)} - .`);
    if (row.name === 'adr') {
      this.#write('add', 8, [places[0]!, address, distance, 0]);
      return null;
    }
    this.#write('add', 8, [address, address, distance, 0]);
    return at(address, 0);
  }

  /** A place with an offset that fits into an instruction. */
  #reached(row: Row, { base, offset }: MemoryPlace): MemoryPlace {
    if (holdsOffset(row, offset)) return at(base, offset);
    const low = offset & 4095;
    if (offset > 0 && offset < 2 ** 24) {
      this.#write('add:stackhigh', 8, [address, base, offset >> 12]);
      if (holdsOffset(row, low)) return at(address, low);
      this.#write('add:stack', 8, [address, address, low]);
      return at(address, 0);
    }
    this.#number(distance, BigInt(offset), 8);
    this.#write('add:uxtx', 8, [address, base, distance]);
    return at(address, 0);
  }

  #moveStack(by: 'add' | 'sub'): void {
    const [high, low] = [this.#bytes >> 12, this.#bytes & 4095];
    if (high > 0) this.#write(`${by}:stackhigh`, 8, [stackPointer, stackPointer, high]);
    if (low > 0) this.#write(`${by}:stack`, 8, [stackPointer, stackPointer, low]);
  }

  enter(): void {
    this.#write('bti', 8, []);
    this.#moveStack('sub');
    for (const [kind, r, offset] of this.#saved)
      this.instruction(rowOf(`str:${kind}`), 8, [at(stackPointer, offset), r]);
    const { args, from, to, scratch } = parameterOffset;
    for (const [r, offset] of [args, from, to, scratch].entries())
      this.#write('str:x', 8, [at(stackPointer, offset), r]);
  }

  label(): number {
    return this.#assembler.label();
  }

  bind(label: number, loop: boolean): void {
    if (loop) this.#assembler.align(16);
    this.#lines?.push(`L${label}:`);
    this.#assembler.bind(label);
  }

  jump(label: number, condition: Condition | null): void {
    this.#lines?.push(`    ${condition === null ? 'b' : `b.${conditionNames[conditions[condition]]}`} L${label}`);
    this.#assembler.jump(label, condition, this.#far);
  }

  result(code: number): void {
    this.#number(0, BigInt(code), 4);
  }

  leave(): void {
    for (const [kind, r, offset] of this.#saved)
      this.instruction(rowOf(`ldr:${kind}`), 8, [r, at(stackPointer, offset)]);
    this.#moveStack('add');
    this.#write('ret', 8, []);
  }

  finish(constants: Uint8Array): Uint8Array<ArrayBuffer> {
    return this.#assembler.finish(constants);
  }
}

const constantMove = rowOf('mov:constant');
