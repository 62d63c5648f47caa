/**
 * The two kernels that no program describes: copying bytes and filling with a pattern. Same call as emitted kernels, groups of 64 KiB.
 */
import { assembleModule, type FunctionBody, type MemoryImport } from './asm/module.ts';
import { S, ValType, W } from './asm/opcodes.ts';
import { ByteWriter } from './asm/writer.ts';

/** Bytes one group copies or fills. */
export const blockBytes = 65536;
export const copyIndex = 0;
export const fillIndex = 1;

const [args, from, to, scratch] = [0, 1, 2, 3];
const memoryIndex = 0;

class Writer extends ByteWriter {
  op(code: number): this {
    if (code > 0xff) {
      this.u8(code >> 16);
      this.uleb(code & 0xffff);
    } else this.u8(code);
    return this;
  }
  get(local: number): this {
    this.u8(W.localGet);
    this.uleb(local);
    return this;
  }
  set(local: number): this {
    this.u8(W.localSet);
    this.uleb(local);
    return this;
  }
  const(value: number): this {
    this.u8(W.i32Const);
    this.sleb(value);
    return this;
  }
  memory(code: number, align: number, offset: number): this {
    this.op(code);
    this.uleb(align);
    this.uleb(offset);
    return this;
  }
}

/** Sets local `from` to the first byte and `to` to the number of bytes of the groups to run; the byte count is in slot 2. */
function byteRange(w: Writer): void {
  w.get(from).const(16).op(W.i32Shl).set(from);
  // to = min(to << 16, bytes); a block count that reaches 4 GiB does not occur.
  w.get(to).const(16).op(W.i32Shl).set(to);
  w.get(args).memory(W.i32Load, 2, 16).get(to).get(args).memory(W.i32Load, 2, 16).get(to).op(W.i32LtU).op(W.select).set(to);
  w.get(to).get(from).op(W.i32Sub).set(to);
}

/** args: destination, source, bytes. */
function copyBody(): FunctionBody {
  const w = new Writer();
  byteRange(w);
  w.get(args).memory(W.i32Load, 2, 0).get(from).op(W.i32Add);
  w.get(args).memory(W.i32Load, 2, 8).get(from).op(W.i32Add);
  w.get(to).op(W.memoryCopy);
  w.u8(memoryIndex);
  w.u8(memoryIndex);
  return body(w, []);
}

/** args: destination, pattern, bytes (a multiple of 4). */
function fillBody(): FunctionBody {
  const w = new Writer();
  const vector = 4;
  byteRange(w);
  w.get(args).memory(W.i32Load, 2, 8).op(S.i32Splat).set(vector);
  w.get(args).memory(W.i32Load, 2, 0).get(from).op(W.i32Add).set(from);
  w.get(from).get(to).op(W.i32Add).set(to);
  const loop = (step: number, store: () => void): void => {
    w.op(W.block).u8(0x40);
    w.op(W.loop).u8(0x40);
    w.get(from).const(step).op(W.i32Add).get(to).op(W.i32GtU).op(W.brIf).u8(1);
    store();
    w.get(from).const(step).op(W.i32Add).set(from);
    w.op(0x0c).u8(0);
    w.op(W.end).op(W.end);
  };
  loop(64, () => {
    for (let i = 0; i < 64; i += 16) w.get(from).get(vector).memory(S.store, 2, i);
  });
  loop(4, () => {
    w.get(from).get(vector).op(S.i32Extract).u8(0);
    w.memory(W.i32Store, 2, 0);
  });
  return body(w, [ValType.v128]);
}

function body(w: ByteWriter, locals: readonly ValType[]): FunctionBody {
  return { params: [args, from, to, scratch].map(() => ValType.i32), results: [], locals, code: w.take() };
}

export function builtinModule(memory: MemoryImport): Uint8Array<ArrayBuffer> {
  return assembleModule(memory, [copyBody(), fillBody()]);
}
