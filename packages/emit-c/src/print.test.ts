/** Whole kernels as text, in both dialects: a change here is a change of what every engine compiles. */
import { type KNode, ProgramBuilder, type Program } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { printOpenCl, printWgsl, PrintError } from './index.ts';

/** y[i] = max(x[i] * s, y[i]) where i < 100, 64 threads a group. */
function elementwise(): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'read', 100);
  const y = e.param(1, 'float32', 'readwrite', 100);
  const at = e.add(e.mul(e.special('group', 0, 2), e.i32(64)), e.special('local', 0, 64));
  b.ifThen(e.lt(at, e.i32(100)), () =>
    b.store(y, at, e.max(e.mul(b.load(x, at), e.scalar(0, 'float32')), b.load(y, at))),
  );
  return b.build({ name: 'scale & max', grid: [2, 1, 1], group: [64, 1, 1], params: [x, y] });
}

/** Sums of rows: every thread adds its part, then thread 0 adds the parts. */
function rowSums(): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'read', 4096);
  const y = e.param(1, 'float32', 'write', 16);
  const parts = b.shared('parts', 'float32', 32);
  const sum = b.reg('sum', 'float32');
  const [row, lane] = [e.special('group', 0, 16), e.special('local', 0, 32)];
  b.store(sum, 0, e.f32(0));
  b.loop(8, (i) => {
    const at = e.add(e.add(e.mul(row, e.i32(256)), e.mul(i, e.i32(32))), lane);
    b.store(sum, 0, e.add(b.load(sum, 0), b.load(x, at)));
  });
  b.store(parts, lane, b.load(sum, 0));
  b.barrier();
  b.ifThen(e.eq(lane, e.i32(0)), () => {
    b.store(sum, 0, e.f32(0));
    b.loop(32, (i) => b.store(sum, 0, e.add(b.load(sum, 0), b.load(parts, i))));
    b.store(y, row, b.load(sum, 0));
  });
  return b.build({ name: 'row_sums', grid: [16, 1, 1], group: [32, 1, 1] });
}

/** y = x * 2 + 1 in vectors of 11 lanes. */
function vectors(): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'read', 110);
  const y = e.param(1, 'float32', 'write', 110);
  b.loop(10, (i) => {
    const at = e.mul(i, e.i32(11));
    b.store(y, at, e.add(e.mul(b.load(x, at, 11), e.f32(2)), e.f32(1)));
  });
  return b.build({ name: 'vectors' });
}

/** y = x + 1 in vectors of 8 lanes, at multiples of 8 and of `step`. */
function aligned(step = 8): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'read', 128);
  const y = e.param(1, 'float32', 'write', 80);
  const group = e.mul(e.special('group', 0, 2), e.i32(40));
  b.loop(5, (i) => {
    const from = b.load(x, e.mul(i, e.i32(step)), 8);
    b.store(y, e.add(group, e.shl(i, e.i32(3))), e.add(from, e.f32(1)));
  });
  return b.build({ name: 'aligned', grid: [2, 1, 1] });
}

describe('sources', () => {
  for (const make of [elementwise, rowSums, vectors, aligned]) {
    it(`${make.name} in WGSL`, () => {
      expect(printWgsl(make()).source).toMatchSnapshot();
    });
    it(`${make.name} in OpenCL C`, () => {
      expect(printOpenCl(make()).source).toMatchSnapshot();
    });
  }

  it('set branches of some groups apart by barriers in OpenCL C, where asked to', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'float32', 'write', 3);
    const row = b.shared('row', 'float32', 4);
    const [group, local] = [e.special('group', 0, 2), e.special('local', 0, 4)];
    b.ifThen(e.lt(group, 1), () => {
      b.store(row, local, e.cast(local, 'float32'));
      b.barrier();
      b.ifThen(e.lt(local, 1), () => b.store(y, 0, b.load(row, 3)));
    });
    b.ifThen(e.lt(0, group), () => b.ifThen(e.lt(local, 2), () => b.store(y, e.add(local, 1), e.f32(1))));
    const program = b.build({ name: 'turns', grid: [2, 1, 1], group: [4, 1, 1] });
    const shape = (source: string): string =>
      source
        .split('\n')
        .map((line) =>
          /barrier\(/.test(line)
            ? 'B'
            : /if \(.*group/.test(line)
              ? 'G('
              : /if \(/.test(line)
                ? 'T('
                : line.trim() === '}'
                  ? ')'
                  : '',
        )
        .join('');
    expect(shape(printOpenCl(program).source)).toBe('G(BT())G(T()))');
    expect(shape(printOpenCl(program, { fenceBranches: true }).source)).toBe('BG(BT())BG(T())B)');
    expect(printOpenCl(elementwise(), { fenceBranches: true }).source).toBe(printOpenCl(elementwise()).source);
  });

  it('end inner loops that threads run for different lengths by barriers in OpenCL C, where asked to', () => {
    const source = (barrier: boolean, fenceBranches: boolean): string => {
      const b = new ProgramBuilder();
      const { e } = b;
      const y = e.param(0, 'int32', 'readwrite', 4);
      const local = e.special('local', 0, 4);
      const add = (by: KNode): void => b.store(y, local, e.add(b.load(y, local), by));
      b.loop(local, add);
      b.loop(2, () => {
        b.loop(3, add);
        b.loop(local, (i) => b.loop(e.add(local, i), add));
      });
      b.ifThen(e.lt(local, 2), () => b.loop(2, () => b.loop(local, add)));
      if (barrier) b.barrier();
      add(e.i32(1));
      return printOpenCl(b.build({ name: 'lengths', group: [4, 1, 1] }), { fenceBranches }).source;
    };
    const ends = (text: string): string =>
      [...text.matchAll(/for \(|if \(|barrier\(|^ *\}$/gm)]
        .map(([found]) => ({ 'for (': 'F(', 'if (': 'T(', 'barrier(': 'B' })[found] ?? ')')
        .join('');
    expect(ends(source(true, false))).toBe('F()F(F()F(F()))T(F(F()))B)');
    expect(ends(source(true, true))).toBe('F()F(F()F(F())B)T(F(F()))B)');
    expect(source(false, true)).toBe(source(false, false));
  });

  it('stores vectors of bytes at once for PoCL', () => {
    const source = (dtype: 'bool' | 'int8' | 'int16', wholeBytes: boolean): string => {
      const b = new ProgramBuilder();
      const { e } = b;
      const x = e.param(0, dtype, 'read', 8);
      const y = e.param(1, dtype, 'write', 8);
      b.store(y, 0, b.load(x, 0, 8));
      return printOpenCl(b.build({ name: 'copy' }), { wholeBytes }).source;
    };
    expect(source('bool', true)).toContain('typedef uchar8 __attribute__((aligned(1))) unaligned_uchar8;');
    expect(source('bool', true)).toMatch(/\*\(__global unaligned_uchar8\*\)\(p1 \+ 0\) = convert_uchar8\(.* & 1\);/);
    expect(source('int8', true)).toMatch(/\*\(__global unaligned_char8\*\)\(p1 \+ 0\) = /);
    for (const text of [source('int16', true), source('bool', false)]) expect(text).toContain('vstore8(');
  });

  it('declare the lengths of parameters where bindings hold them whole', () => {
    expect(printWgsl(elementwise(), { sized: true }).source).toContain('var<storage, read> p0: array<f32, 100>;');
    expect(printWgsl(aligned(), { sized: true }).source).toContain(
      'var<storage, read_write> p1: array<vec4<f32>, 20>;',
    );
  });

  it('use subgroups in WGSL, whose results never move under a condition', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'float32', 'write', 64);
    const local = e.special('local', 0, 64);
    const sum = b.subgroup('sum', e.scalar(0, 'float32'));
    b.store(y, local, sum, e.eq(e.special('leader', 0), e.special('subgroup', 0)));
    const program = b.build({ name: 'subgroups', group: [64, 1, 1] });
    const { source } = printWgsl(program);
    expect(source.split('\n').slice(0, 2)).toEqual(['enable subgroups;', 'requires subgroup_id;']);
    expect(source).toContain('@builtin(subgroup_id) subgroup_id: u32) {');
    expect(source.split('\n').slice(-9, -1)).toMatchInlineSnapshot(`
      [
        "  let local_x = i32(local[0]);",
        "  let leader_x = select(0i, 1i, subgroupElect());",
        "  let subgroup_x = i32(subgroup_id);",
        "  let v0 = subgroupAdd(scalar_0);",
        "  if (leader_x == subgroup_x) {",
        "    p0[local_x] = v0;",
        "  }",
        "}",
      ]
    `);
    expect(printWgsl(rowSums()).source).not.toContain('subgroup');
    expect(() => printOpenCl(program)).toThrow('OpenCL C 1.2 has no subgroups: leave out caps.subgroups');
  });

  it('are equal for equal programs', () => {
    for (const print of [printWgsl, printOpenCl]) expect(print(rowSums()).source).toBe(print(rowSums()).source);
  });

  it('access whole vectors in WGSL only where they are aligned for certain', () => {
    const arrays = (p: Program): string[] => printWgsl(p).source.match(/array<.*>/g) ?? [];
    expect(arrays(aligned())).toEqual(['array<vec4<f32>>', 'array<vec4<f32>>']);
    expect(arrays(aligned(4))).toEqual(['array<vec4<f32>>', 'array<vec4<f32>>']);
    expect(arrays(aligned(6))).toEqual(['array<f32>', 'array<vec4<f32>>']);
  });

  it('read elements of overlapping vectors once in WGSL, from memory that nobody writes', () => {
    const { e } = new ProgramBuilder();
    const x = e.param(0, 'float32', 'read', 102);
    const y = e.param(1, 'float32', 'write', 100);
    const make = (inBlock: boolean): Program => {
      const b = new ProgramBuilder();
      b.loop(25, (i) => {
        const at = b.e.mul(i, b.e.i32(4));
        const [first, second] = [b.load(x, at, 4), b.load(x, b.e.add(at, b.e.i32(1)), 4)];
        const third = (): KNode => b.load(x, b.e.add(at, b.e.i32(2)), 4);
        const store = (): void => b.store(y, at, b.e.add(b.e.mul(first, second), third()));
        if (!inBlock) return store();
        b.store(y, at, b.e.add(first, second));
        b.ifThen(b.e.lt(i, b.e.i32(20)), store);
      });
      return b.build({ name: 'window', params: [x, y] });
    };
    const count = (text: string): number => text.split('p0[').length - 1;
    expect(count(printWgsl(make(false)).source)).toBe(6);
    expect(count(printWgsl(make(true)).source)).toBe(5 + 4);
    // The output lies in the input's memory: four elements are stored there too.
    expect(count(printWgsl(make(false), { same: new Map([[1, 0]]) }).source)).toBe(12 + 4);
  });

  it('name the node of every line', () => {
    for (const print of [printWgsl, printOpenCl]) {
      const { source, lines } = print(rowSums());
      const text = source.split('\n');
      expect(text.length).toBe(lines.length + 1);
      const nodes = text.flatMap((line, i) => (/barrier|Barrier/i.test(line) ? [lines[i]?.op] : []));
      expect(nodes).toEqual(['BARRIER']);
    }
  });
});

describe('bindings', () => {
  it('are told to the driver', () => {
    const wgsl = printWgsl(elementwise());
    expect(wgsl.params.map((p) => [p.slot, p.access, p.binding])).toEqual([
      [0, 'read', 0],
      [1, 'readwrite', 1],
    ]);
    expect([wgsl.scalars, wgsl.scalarBytes]).toEqual([[{ slot: 0, dtype: 'float32', at: 0 }], 4]);
    const opencl = printOpenCl(elementwise(), { offsets: true });
    expect(opencl.params.map((p) => [p.binding, p.offsetArgument])).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(opencl.scalars).toEqual([{ slot: 0, dtype: 'float32', at: 4 }]);
  });

  it('have a zero for values that are ROUNDED, behind everything else', () => {
    const program = (lanes: number): Program => {
      const b = new ProgramBuilder();
      const { e } = b;
      const x = e.param(0, 'float32', 'readwrite', 8);
      const s = b.e.scalar(0, 'float32');
      const sum = e.unary('ROUNDED', e.add(b.load(x, 0, lanes), e.splat(s, lanes)));
      b.store(x, 0, e.sub(sum, e.splat(s, lanes)));
      return b.build({ name: 'rounded', scalars: ['float32'] });
    };
    const one = printWgsl(program(1));
    expect(one.source).toContain('struct Scalars { s0: f32, zero: u32 }');
    expect(one.source).toContain('let zero = scalars.zero;');
    expect(one.source).toContain('bitcast<f32>(bitcast<u32>(p0[0i] + scalar_0) ^ zero) - scalar_0');
    expect([one.scalars.length, one.scalarBytes, one.groupAt]).toEqual([1, 8, -1]);
    const four = printWgsl(program(4), { pieces: true });
    expect(four.source).toContain('bitcast<vec4<f32>>(bitcast<vec4<u32>>(');
    expect(four.source).toContain(') ^ vec4<u32>(zero))');
    expect([four.scalarBytes, four.groupAt]).toEqual([20, 4]);
  });

  it('round floats of 16 bits by their own bits', () => {
    const source = (lanes: number): string => {
      const b = new ProgramBuilder();
      const { e } = b;
      const x = e.param(0, 'float32', 'readwrite', 8);
      const small = e.unary('ROUNDED', e.cast(b.load(x, 0, lanes), 'float16'));
      b.store(x, 0, e.cast(small, 'float32'));
      return printWgsl(b.build({ name: 'narrow' }), { f16: true }).source;
    };
    expect(source(1)).toContain('f32(bitcast<vec2<f16>>(bitcast<u32>(vec2<f16>(f16(p0[0i]))) ^ zero)[0])');
    expect(source(2)).toMatch(/vec2<f32>\(bitcast<vec2<f16>>\(bitcast<u32>\(vec2<f16>\(.*\)\) \^ zero\)\)/);
    expect(source(4)).toMatch(/bitcast<vec4<f16>>\(bitcast<vec2<u32>>\(vec4<f16>\(.*\)\) \^ vec2<u32>\(zero\)\)/);
  });

  it('have that zero for literal zeros beside products and quotients of floats in WGSL too', () => {
    const source = (dtype: 'float32' | 'int32', value: number, lanes: number): string => {
      const b = new ProgramBuilder();
      const { e } = b;
      const x = e.param(0, dtype, 'readwrite', 8);
      const zero = e.constant(dtype, value, lanes);
      const product = e.intern('MUL', dtype, lanes, [b.load(x, 0, lanes), zero]);
      b.store(x, 0, dtype === 'int32' ? product : e.intern('DIV', dtype, lanes, [product, zero]));
      return printWgsl(b.build({ name: 'zeros' })).source;
    };
    expect(source('float32', 0, 1)).toContain('struct Scalars { zero: u32 }');
    expect(source('float32', 0, 1)).toContain('(p0[0i] * bitcast<f32>(0u ^ zero)) / bitcast<f32>(0u ^ zero);');
    expect(source('float32', -0, 1)).toContain('* bitcast<f32>(2147483648u ^ zero)');
    expect(source('float32', 0, 4)).toContain('/ vec4<f32>(bitcast<f32>(0u ^ zero))');
    for (const text of [source('float32', 1, 1), source('int32', 0, 1)]) expect(text).not.toContain('scalars');
  });

  it('look at bits in casts of floats to bool: devices may compare denormal numbers as 0', () => {
    const cast = (lanes: number): Program => {
      const b = new ProgramBuilder();
      const x = b.e.param(0, 'float32', 'read', lanes);
      b.store(b.e.param(1, 'bool', 'write', lanes), 0, b.e.cast(b.load(x, 0, lanes), 'bool'));
      return b.build({ name: 'truth' });
    };
    expect(printOpenCl(cast(1)).source).toContain('(as_int(p0[0]) & 0x7fffffff) != 0');
    expect(printOpenCl(cast(4)).source).toMatch(/\(as_int4\(.*\) & 0x7fffffff\) != 0/);
    expect(printWgsl(cast(1)).source).toContain('(bitcast<u32>(p0[0i]) & 0x7fffffffu) != 0u');
  });
  it('of an output in the memory of an input are one', () => {
    const { source, params } = printWgsl(elementwise(), { same: new Map([[0, 1]]) });
    expect(params.map((p) => p.binding)).toEqual([-1, 0]);
    expect(source.match(/@binding/g)?.length).toBe(2);
    expect(source).not.toContain('p0');
  });

  it('of grids larger than a dispatch are folded', () => {
    const program = (grid: [number, number, number]): Program => {
      const b = new ProgramBuilder();
      const { e } = b;
      const axes = ([0, 1, 2] as const).map((axis) => e.special('group', axis));
      const x = e.param(0, 'int32', 'write', 1);
      b.store(x, 0, axes.reduce((a, c) => e.add(a, c) as never) as KNode);
      return b.build({ name: 'grid', grid });
    };
    expect(printWgsl(program([65535, 2, 1])).dispatch).toEqual([65535, 2, 1]);
    expect(printWgsl(program([65536, 1, 1])).dispatch).toEqual([32768, 2, 1]);
    expect(printWgsl(program([100, 3, 1]), { maxGroups: 20 }).dispatch).toEqual([20, 15, 1]);
    expect(printWgsl(program([7, 7, 7]), { maxGroups: 7 }).dispatch).toEqual([7, 7, 7]);
    expect(printWgsl(program([101, 1, 1]), { maxGroups: 50 }).source).toContain('if (number >= 101u) { return; }');
    expect(() => printWgsl(program([1000, 1, 1]), { maxGroups: 9 })).toThrow(/1000 x 1 x 1 groups/);
    const pieces = printWgsl(program([1000, 1, 1]), { maxGroups: 9, pieces: true });
    expect(pieces).toMatchObject({ dispatch: [1000, 1, 1], scalarBytes: 12, groupAt: 0 });
    expect(pieces.source).toContain('vec3<i32>(at) + vec3<i32>(scalars.first_x, scalars.first_y, scalars.first_z)');
    expect(printWgsl(program([9, 1, 1])).groupAt).toBe(-1);
  });
});

describe('options of OpenCL C', () => {
  it('say what the device has', () => {
    const plain = printOpenCl(rowSums()).source;
    const own = printOpenCl(rowSums(), { shared: 'private', restrict: true }).source;
    expect(plain).toContain('__local float shared_parts_0[32];');
    expect(own).toContain('\n  float shared_parts_0[32];');
    expect(own).toContain('__global const float* restrict p0');
    expect(printOpenCl(vectors(), { lanes: 4 }).source).toContain('vload4');
    expect(printOpenCl(vectors(), { lanes: 4 }).source).not.toContain('vload8');
  });
  it('choose how multiplication and addition and unrolling are asked for', () => {
    const b = new ProgramBuilder();
    const x = b.e.param(0, 'float32', 'readwrite', 4);
    b.loop(
      4,
      (i) => {
        const v = b.load(x, i);
        b.store(x, i, b.e.ternary('MULADD', v, v, v));
      },
      { unrollHint: true },
    );
    const program = b.build({ name: 'muladd' });
    expect(printOpenCl(program).source).toContain('v0 * v0 + v0');
    expect(printOpenCl(program, { fastFma: true }).source).toContain('fma(v0, v0, v0)');
    expect(printOpenCl(program).source).toContain('#pragma unroll');
    expect(printOpenCl(program, { unroll: 'attribute' }).source).toContain('opencl_unroll_hint');
    expect(printOpenCl(program, { unroll: 'none' }).source).not.toContain('unroll');
    expect(printWgsl(program).source).toContain('fma(v0, v0, v0)');
    expect(printWgsl(program, { muladd: 'plain' }).source).toContain('v0 * v0 + v0');
  });
});

describe('refusals', () => {
  const unary = (dtype: 'float32' | 'float64' | 'float16' | 'int64', op: 'EXP' | 'NEG'): Program => {
    const b = new ProgramBuilder();
    const x = b.e.param(0, dtype, 'readwrite', 1);
    b.store(x, 0, b.e.unary(op, b.load(x, 0)));
    return b.build({ name: 'unary' });
  };
  it('say what is missing', () => {
    expect(() => printWgsl(unary('int64', 'NEG'))).toThrow(/WGSL has no int64/);
    expect(() => printWgsl(unary('float16', 'NEG'))).toThrow(/shader-f16/);
    expect(() => printOpenCl(unary('float64', 'NEG'))).toThrow(/cl_khr_fp64/);
    expect(() => printOpenCl(unary('float16', 'NEG'))).toThrow(/cl_khr_fp16/);
  });
  it('name the node', () => {
    try {
      printWgsl(unary('float32', 'EXP'));
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(PrintError);
      expect((error as PrintError).message).toContain('EXP on float32');
      expect((error as PrintError).node?.op).toBe('EXP');
    }
  });
});
