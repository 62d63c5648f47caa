/**
 * Puts function bodies together into a WebAssembly module that imports one memory and exports its functions.
 *
 * The assembler proper: sections, types, locals. It never looks into code bytes; `emit/` writes those.
 */
import type { ValType } from './types.ts';
import { ByteWriter } from './writer.ts';

/** The memory a module imports as `m.m`. */
export interface MemoryImport {
  /** Initial size in pages of 64 KiB that the import must at least have. */
  readonly minPages: number;
  /** Must be given (and must match the memory's own) when shared. */
  readonly maxPages?: number;
  readonly shared: boolean;
  /** 64: memory64, addresses are i64. */
  readonly addressBits: 32 | 64;
}

/** One function: what it takes and gives, its locals after the parameters, and its instructions without the final `end`. */
export interface FunctionBody {
  /** Shown by profilers. */
  readonly name: string;
  readonly params: readonly ValType[];
  readonly results: readonly ValType[];
  readonly locals: readonly ValType[];
  readonly code: Uint8Array;
}

/** Export name of function `index`. */
export function exportName(index: number): string {
  return index.toString(36);
}

/** The binary of a module with these functions, each exported under `exportName(its index)`. */
export function assembleModule(memory: MemoryImport, functions: readonly FunctionBody[]): Uint8Array<ArrayBuffer> {
  let size = 128;
  for (const f of functions) size += f.code.length + f.locals.length * 2 + 32;
  const out = new ByteWriter(size);
  const section = new ByteWriter(256);
  const item = new ByteWriter(256);
  const flush = (id: number): void => {
    out.u8(id);
    out.uleb(section.length);
    out.bytes(section.view());
    section.clear();
  };
  out.bytes(Uint8Array.of(0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00));

  // Function types, each listed once.
  const typeIds = new Map<string, number>();
  const typeOf = functions.map((f) => {
    const key = `${f.params.join()}>${f.results.join()}`;
    let id = typeIds.get(key);
    if (id === undefined) {
      id = typeIds.size;
      typeIds.set(key, id);
      item.u8(0x60);
      item.uleb(f.params.length);
      for (const t of f.params) item.u8(t);
      item.uleb(f.results.length);
      for (const t of f.results) item.u8(t);
    }
    return id;
  });
  section.uleb(typeIds.size);
  section.bytes(item.view());
  flush(1);

  section.uleb(1);
  section.name('m');
  section.name('m');
  section.u8(0x02);
  section.u8((memory.maxPages === undefined ? 0 : 1) | (memory.shared ? 2 : 0) | (memory.addressBits === 64 ? 4 : 0));
  section.uleb(memory.minPages);
  if (memory.maxPages !== undefined) section.uleb(memory.maxPages);
  flush(2);

  section.uleb(functions.length);
  for (const id of typeOf) section.uleb(id);
  flush(3);

  section.uleb(functions.length);
  for (let i = 0; i < functions.length; i++) {
    section.name(exportName(i));
    section.u8(0x00);
    section.uleb(i);
  }
  flush(7);

  section.uleb(functions.length);
  for (const f of functions) {
    item.clear();
    writeLocals(item, f.locals);
    section.uleb(item.length + f.code.length + 1);
    section.bytes(item.view());
    section.bytes(f.code);
    section.u8(0x0b);
  }
  flush(10);

  // Custom section "name", subsection 1: function names.
  item.clear();
  item.uleb(functions.length);
  for (let i = 0; i < functions.length; i++) {
    item.uleb(i);
    item.name(functions[i]!.name);
  }
  section.name('name');
  section.u8(1);
  section.uleb(item.length);
  section.bytes(item.view());
  flush(0);
  return out.take();
}

/** Local declarations as runs of equal types. */
function writeLocals(out: ByteWriter, locals: readonly ValType[]): void {
  let runs = 0;
  for (let i = 0; i < locals.length; i++) if (i === 0 || locals[i] !== locals[i - 1]) runs++;
  out.uleb(runs);
  for (let start = 0; start < locals.length; ) {
    let end = start + 1;
    while (end < locals.length && locals[end] === locals[start]) end++;
    out.uleb(end - start);
    out.u8(locals[start]!);
    start = end;
  }
}
