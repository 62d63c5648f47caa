/** What the interpreter of PTX refuses, and the faults it finds: what hides in a device shows there. */
import { describe, expect, it } from 'vitest';
import { ptxRun, runLaunches } from './fixtures/ptx-run.ts';

/** Runs lines of a kernel with one buffer of `bytes` bytes; gives it as words. */
function run(lines: readonly string[], { bytes = 256, threads = 32, dynamic = 0, head = '' } = {}): number[] {
  const text = [
    '.version 7.0',
    '.target sm_80',
    '.address_size 64',
    ...(head === '' ? [] : [head]),
    '.visible .entry k(.param .u64 p0)',
    '{',
    '.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<8>;',
    '.shared .align 16 .b8 s[256];',
    'ld.param.b64 %rd0, [p0];',
    'mov.u32 %r0, %tid.x;',
    'mad.wide.s32 %rd1, %r0, 4, %rd0;',
    ...lines,
    'ret;',
    '}',
  ].join('\n');
  const launch = {
    text,
    entry: 'k',
    grid: [1, 1, 1],
    group: [threads, 1, 1],
    dynamicSharedBytes: dynamic,
    arguments: [{ buffer: 0, offset: 0, bytes }],
  } as const;
  const [after] = runLaunches([new Uint8Array(bytes)], [launch]);
  return [...new Uint32Array(new Uint8Array(after!).buffer)];
}

describe.skipIf(ptxRun() === null)('the interpreter', () => {
  it.each([
    ['an instruction', ['ex2.approx.f32 %f0, %f1;'], /line 11: unknown instruction ex2\.approx\.f32/],
    ['a register', ['mov.b32 %r0, %r9;'], /line 11: no register %r9/],
    ['the size of a register', ['add.s32 %r0, %rd0, 1;'], /another size/],
    ['a label', ['bra $nowhere;'], /no label \$nowhere/],
    ['a number of operands', ['add.s32 %r0, %r1;'], /another number of operands/],
    ['a literal', ['mov.f32 %f0, 0f3f80;'], /8 or 16 digits/],
    ['a directive', ['.local .b8 x[4];'], /unknown directive \.local/],
  ])('refuses %s that it does not know, with the line', (_, lines, why) => {
    expect(() => run(lines)).toThrow(why);
  });

  it.each([
    [
      'an access out of range',
      ['st.global.b32 [%rd1+132], %r0;'],
      /line 11: st\.global.* thread \(31, 0, 0\): .* out of range/,
    ],
    ['one before the start', ['ld.global.b32 %r1, [%rd1+-4];'], /thread \(0, 0, 0\): .* out of range/],
    [
      'an access that is not aligned',
      ['ld.global.v2.b32 {%r1, %r2}, [%rd1];'],
      /thread \(1, 0, 0\): .* not a multiple of 8/,
    ],
    ['shared memory out of range', ['st.shared.b32 [s+256], %r0;'], /out of the group's 256/],
    ['shared memory that nobody wrote', ['ld.shared.b32 %r1, [s];'], /read before it is written/],
    ['two threads that write one place', ['st.shared.b32 [s], %r0;'], /race at shared address 0x0: thread 0 wrote it/],
    ['lanes that a mask does not name', ['shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xffff;'], /mask of lanes/],
  ])('finds %s', (_, lines, why) => {
    expect(() => run(lines, { bytes: 256 })).toThrow(why);
  });

  it('finds reading what another thread wrote without a barrier, and takes it with one', () => {
    const shift = (between: readonly string[]): readonly string[] => [
      'mov.u32 %r1, s;',
      'mad.lo.s32 %r2, %r0, 4, %r1;',
      'st.shared.b32 [%r2], %r0;',
      ...between,
      'xor.b32 %r3, %r2, 4;',
      'ld.shared.b32 %r4, [%r3];',
      'st.global.b32 [%rd1], %r4;',
    ];
    expect(() => run(shift([]))).toThrow(/race .* wrote it, no barrier between/);
    expect(run(shift(['bar.sync 0;'])).slice(0, 6)).toEqual([1, 0, 3, 2, 5, 4]);
  });

  it('tells bytes of one word apart, and finds a race for one of them', () => {
    const bytes = (between: readonly string[], load: string): readonly string[] => [
      'mov.u32 %r1, s;',
      'add.s32 %r2, %r1, %r0;',
      'st.shared.u8 [%r2], %r0;',
      ...between,
      load,
      'st.global.b32 [%rd1], %r3;',
    ];
    // Each thread its own byte: no race, though four of them share a word.
    expect(run(bytes([], 'ld.shared.u8 %r3, [%r2];')).slice(0, 6)).toEqual([0, 1, 2, 3, 4, 5]);
    const word = 'ld.shared.b32 %r3, [s];';
    expect(() => run(bytes([], word))).toThrow(/race at shared address 0x1: thread 1 wrote it, no barrier between/);
    expect(run(bytes(['bar.sync 0;'], word))[0]).toBe(0x03020100);
    const apart = ['and.b32 %r4, %r0, 1;', 'mad.lo.s32 %r2, %r4, 4, %r1;', 'setp.lt.s32 %p0, %r0, 2;'];
    const halves = [...apart, '@%p0 st.shared.b32 [%r2], %r0;', 'setp.eq.s32 %p0, %r0, 0;'];
    expect(() => run(['mov.u32 %r1, s;', ...halves, '@%p0 ld.shared.b64 %rd2, [s];'])).toThrow(
      /race at shared address 0x4: thread 1 wrote it/,
    );
  });

  it('finds a barrier that not all threads reach', () => {
    const some = ['setp.lt.s32 %p0, %r0, 40;', '@!%p0 bra $end;', 'bar.sync 0;', '$end:'];
    expect(() => run(some, { threads: 64 })).toThrow(
      /bar\.sync 0; .* thread \(40, 0, 0\): .* not reached by all threads/,
    );
    const first = ['setp.lt.s32 %p0, %r0, 32;', '@!%p0 bra $end;', 'bar.sync 0;', '$end:'];
    expect(() => run(first, { threads: 64 })).toThrow(/not reached by all warps/);
  });

  describe('at barriers for parts of a group', () => {
    /** Each thread writes a byte and reads that of another one, after what stands between. */
    const shift = (distance: number, ...between: readonly string[]): readonly string[] => [
      'mov.u32 %r1, s;',
      'add.s32 %r2, %r0, %r1;',
      'st.shared.u8 [%r2], %r0;',
      ...between,
      `xor.b32 %r3, %r0, ${distance};`,
      'add.s32 %r3, %r3, %r1;',
      'ld.shared.u8 %r4, [%r3];',
      'st.global.b32 [%rd1], %r4;',
    ];
    const ofHalf = ['shr.u32 %r5, %r0, 6;', 'add.s32 %r5, %r5, 1;', 'bar.sync %r5, 64;'];
    const at = { threads: 128, bytes: 512 };

    it('lets those of a part go on, and finds races with the others', () => {
      expect(run(shift(32, ...ofHalf), at).slice(0, 2)).toEqual([32, 33]);
      expect(run(shift(1, 'bar.warp.sync 0xffffffff;'), at).slice(0, 2)).toEqual([1, 0]);
      expect(() => run(shift(64, ...ofHalf), at)).toThrow(/race at .* wrote it|read before it is written/);
      expect(() => run(shift(32, 'bar.warp.sync 0xffffffff;'), at)).toThrow(
        /race at .* wrote it|read before it is written/,
      );
      // A barrier of all, after one of a part: everything is in order.
      expect(run(shift(64, ...ofHalf, 'bar.sync 0;'), at).slice(0, 2)).toEqual([64, 65]);
    });

    it('finds a write that comes before another thread of the part has read', () => {
      // The second warp of a part writes again what the first one reads.
      const again = ['setp.lt.s32 %p0, %r0, 96;', '@!%p0 st.shared.u8 [%r2], %r0;'];
      expect(() => run([...shift(32, ...ofHalf), ...again], at)).toThrow(/race at .* read it/);
      expect(run([...shift(32, ...ofHalf), ...ofHalf, ...again], at).slice(0, 2)).toEqual([32, 33]);
    });

    it.each([
      ['a number above 15', ['mov.b32 %r5, 16;', 'bar.sync %r5, 64;'], /numbered 0 to 15: got 16/],
      [
        'more threads than it is for',
        ['mov.b32 %r5, 1;', 'bar.sync %r5, 64;'],
        /more threads wait at a barrier than it is for/,
      ],
      ['fewer threads than it is for', ['mov.b32 %r5, 1;', 'bar.sync %r5, 160;'], /not reached by all warps/],
      ['another number for each lane', ['bar.sync %r0, 64;'], /lanes wait at different barriers/],
      ['half a warp', ['bar.sync %r0, 48;'], /whole warps/],
      ['a mask of other lanes', ['bar.warp.sync 0xffff;'], /the lanes of the mask are not those that get there/],
    ])('refuses %s', (_, lines, why) => {
      expect(() => run(lines, at)).toThrow(why);
    });

    it('refuses different numbers of threads at one barrier', () => {
      const lines = [
        'mov.b32 %r5, 1;',
        'setp.lt.s32 %p0, %r0, 32;',
        '@!%p0 bra $other;',
        'bar.sync %r5, 64;',
        'bra $end;',
        '$other:',
        'bar.sync %r5, 96;',
        '$end:',
      ];
      expect(() => run(lines, at)).toThrow(/barrier 1 is for 96 threads, and others wait there as 64/);
    });
  });

  it('runs lanes that part, and brings them together again', () => {
    const lines = [
      'mov.b32 %r1, 0;',
      '$again:',
      'and.b32 %r2, %r0, 3;',
      'setp.gt.s32 %p0, %r1, %r2;',
      '@%p0 bra $end;',
      'add.s32 %r1, %r1, 1;',
      'bra $again;',
      '$end:',
      // Only where all are together again the mask fits.
      'shfl.sync.bfly.b32 %r3, %r1, 1, 31, 0xffffffff;',
      'mad.lo.s32 %r4, %r1, 10, %r3;',
      'st.global.b32 [%rd1], %r4;',
    ];
    expect(run(lines).slice(0, 8)).toEqual([12, 21, 34, 43, 12, 21, 34, 43]);
  });

  it('knows what instructions do at the edges', () => {
    const one = (kind: 'r' | 'f', ...lines: readonly string[]): number =>
      run([...lines, `st.global.b32 [%rd1], %${kind}1;`])[0]!;
    const bits = (x: number): number => new Uint32Array(Float32Array.of(x).buffer)[0]!;
    // Counts of shifts are not taken modulo 32.
    expect(one('r', 'mov.b32 %r2, 1;', 'shl.b32 %r1, %r2, 32;')).toBe(0);
    expect(one('r', 'mov.b32 %r2, -8;', 'shr.s32 %r1, %r2, 40;')).toBe(0xffffffff);
    // Without .NaN the number wins; -0 is less than 0.
    expect(one('f', 'max.f32 %f1, 0f7FC00000, 0f3F800000;')).toBe(bits(1));
    expect(one('f', 'max.f32 %f1, 0f80000000, 0f00000000;')).toBe(bits(0));
    expect(one('f', 'min.f32 %f1, 0f00000000, 0f80000000;')).toBe(bits(-0));
    expect(one('f', 'max.NaN.f32 %f1, 0f7FC00000, 0f3F800000;')).toBe(0x7fffffff);
    // NaN is 0 between float32 and 32 bits, and the top bit where 64 bits are on either side.
    expect(one('r', 'cvt.rzi.s32.f32 %r1, 0f7FC00000;')).toBe(0);
    expect(one('r', 'cvt.rzi.s32.f64 %r1, 0d7FF8000000000000;')).toBe(0x80000000);
    expect(one('r', 'cvt.rzi.s64.f32 %rd2, 0f7FC00000;', 'shr.u64 %rd3, %rd2, 32;', 'cvt.u32.u64 %r1, %rd3;')).toBe(
      0x80000000,
    );
    expect(one('r', 'cvt.rzi.u32.f32 %r1, 0fC0000000;')).toBe(0);
    expect(one('r', 'cvt.rzi.s32.f32 %r1, 0f4F800000;')).toBe(0x7fffffff);
    // Fused once: 1 + 2^-23 squared, less 1 + 2^-22.
    expect(one('f', 'fma.rn.f32 %f1, 0f3F800001, 0f3F800001, 0fBF800002;')).toBe(bits(2 ** -46));
    // Halves to even, subnormal numbers, overflow.
    const half = (x: number): number =>
      one('r', `mov.b32 %f2, ${bits(x)};`, 'cvt.rn.f16.f32 %h1, %f2;', 'cvt.u32.u16 %r1, %h1;');
    expect([1, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 65519, 65520, 2 ** -24, 2 ** -25, -0].map(half)).toEqual([
      0x3c00, 0x3c00, 0x3c02, 0x7bff, 0x7c00, 1, 0, 0x8000,
    ]);
    const brain = (x: number): number =>
      one('r', `mov.b32 %f2, ${bits(x)};`, 'cvt.rn.bf16.f32 %h1, %f2;', 'cvt.u32.u16 %r1, %h1;');
    expect([1, 1 + 2 ** -8, 1 + 3 * 2 ** -8, 3.4e38, -2].map(brain)).toEqual([0x3f80, 0x3f80, 0x3f82, 0x7f80, 0xc000]);
  });

  it('has shared memory without a length behind that with one', () => {
    const head = '.extern .shared .align 16 .b8 more[];';
    const lines = ['mov.u32 %r1, more;', 'st.global.b32 [%rd1], %r1;', 'mov.b32 %r2, 7;'];
    expect(run(lines, { head, dynamic: 64, threads: 1 })[0]).toBe(256);
    expect(() => run(['st.shared.b32 [more+64], %r0;'], { head, dynamic: 64 })).toThrow(/out of the group's 320/);
  });
});
