/** What is written for parts of a program: addresses, gates, vectors, loops, literals, targets, and what is refused. */
import { type KNode, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { capabilityFor, emitPtx, PtxError, ptxCaps, type PtxKernel } from './index.ts';

type B = ProgramBuilder;

const target = { computeCapability: 80, isa: '7.0' };

function emitted(write: (b: B, x: KNode, y: KNode) => void, group: [number, number, number] = [1, 1, 1]): PtxKernel {
  const b = new ProgramBuilder();
  const [x, y] = [b.e.param(0, 'float32', 'read', 64), b.e.param(1, 'float32', 'readwrite', 64)];
  write(b, x, y);
  return emitPtx(b.build({ name: 'lines', params: [x, y], group }), target);
}

/** Instructions but for declarations, parameters and the end. */
function linesOf(...args: Parameters<typeof emitted>): string[] {
  const { text } = emitted(...args);
  const body = text.slice(text.indexOf('{\n') + 2, text.lastIndexOf('  ret;'));
  return body
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(\.reg|ld\.param|cvta)/.test(line));
}

describe('addresses', () => {
  it('constants added to an index are the offset of the access', () => {
    const lines = linesOf(
      (b, x, y) => {
        const at = b.e.special('local', 0, 32);
        b.store(y, at, b.e.add(b.load(x, b.e.add(at, b.e.i32(1))), b.load(x, b.e.add(at, b.e.i32(2)))));
      },
      [32, 1, 1],
    );
    expect(lines).toEqual([
      'mov.u32 %r0, %tid.x;',
      'mad.wide.s32 %rd2, %r0, 4, %rd1;',
      'ld.global.f32 %f0, [%rd2+4];',
      'ld.global.f32 %f1, [%rd2+8];',
      'add.rn.f32 %f2, %f0, %f1;',
      'mad.wide.s32 %rd5, %r0, 4, %rd4;',
      'st.global.f32 [%rd5], %f2;',
    ]);
  });

  it('whole vectors are as wide as their alignment is certain', () => {
    const lines = linesOf(
      (b, x, y) => {
        const at = b.e.special('local', 0, 8);
        b.store(y, b.e.mul(at, b.e.i32(8)), b.load(x, b.e.mul(at, b.e.i32(8)), 8));
        b.store(y, b.e.mul(at, b.e.i32(2)), b.load(x, b.e.mul(at, b.e.i32(3)), 2));
      },
      [8, 1, 1],
    );
    expect(lines.filter((line) => /^(ld|st)/.test(line)).map((line) => line.split(' ')[0])).toEqual([
      'ld.global.v4.f32',
      'ld.global.v4.f32',
      'st.global.v4.f32',
      'st.global.v4.f32',
      'ld.global.f32',
      'ld.global.f32',
      'st.global.v2.f32',
    ]);
  });
});

it('no address before the start of group memory is computed', () => {
  const reversed = (shared: boolean): string[] =>
    linesOf(
      (b, x, y) => {
        const at = b.e.special('local', 0, 32);
        const mem = shared ? b.shared('s', 'float32', 33) : x;
        if (shared) b.store(mem, at, b.e.f32(0));
        b.store(y, at, b.load(mem, b.e.add(b.e.sub(at, b.e.special('local', 1, 2)), b.e.i32(1))));
      },
      [32, 2, 1],
    );
  expect(reversed(false).join()).toMatch(/ld\.global\.f32 %f0, \[%rd\d\+4\]/);
  expect(reversed(true).join()).toMatch(/ld\.shared\.f32 %f0, \[%r\d\]/);
});

it('gates are predicates', () => {
  const lines = linesOf(
    (b, x, y) => {
      const at = b.e.special('local', 0, 32);
      const open = b.e.lt(at, b.e.i32(20));
      b.store(y, at, b.load(x, at, 1, open, b.e.f32(7)), open);
    },
    [32, 1, 1],
  );
  expect(lines.slice(1)).toEqual([
    'setp.lt.s32 %p0, %r0, 20;',
    'mad.wide.s32 %rd2, %r0, 4, %rd1;',
    'mov.f32 %f0, 0f40E00000;',
    '@%p0 ld.global.f32 %f0, [%rd2];',
    'mad.wide.s32 %rd5, %r0, 4, %rd4;',
    '@%p0 st.global.f32 [%rd5], %f0;',
  ]);
});

it('a loop whose extent is at least one has its test at the end alone', () => {
  const lines = linesOf((b, x, y) => b.loop(5, (i) => b.store(y, i, b.load(x, i))));
  expect(lines[0]).toBe('mov.b32 %r0, 0;');
  expect(lines.slice(-4)).toEqual(['add.s32 %r0, %r0, 1;', 'setp.lt.s32 %p0, %r0, 5;', '@%p0 bra $L0;', '$L1:']);
});

it('every line has the node it came from', () => {
  const { text, lines } = emitted((b, x, y) => b.store(y, 0, b.load(x, 0)));
  const texts = text.trimEnd().split('\n');
  expect(lines).toHaveLength(texts.length);
  expect(lines[texts.findIndex((line) => line.includes('st.global'))]?.op).toBe('STORE');
});

it('equal programs give equal text', () => {
  const write = (b: B, x: KNode, y: KNode): void => b.loop(3, (i) => b.store(y, i, b.load(x, i)));
  expect(emitted(write).text).toBe(emitted(write).text);
});

describe('group memory', () => {
  const exchange = (length: number): PtxKernel =>
    emitted(
      (b, x, y) => {
        const s = b.shared('s', 'float32', length);
        const at = b.e.special('local', 0, 32);
        b.store(s, at, b.load(x, at));
        b.barrier();
        b.store(y, at, b.load(s, b.e.xor(at, b.e.i32(1))));
      },
      [32, 1, 1],
    );

  it('up to 48 KiB is declared with its length', () => {
    const k = exchange(12288);
    expect(k).toMatchObject({ sharedBytes: 49152, dynamicSharedBytes: 0 });
    expect(k.text).toContain('.shared .align 16 .b8 group_memory[49152];');
  });

  it('more is asked for at the launch', () => {
    const k = exchange(12292);
    expect(k).toMatchObject({ sharedBytes: 49168, dynamicSharedBytes: 49168 });
    expect(k.text).toContain('.extern .shared .align 16 .b8 group_memory[];');
  });
});

describe('barriers for parts', () => {
  const text = (threads: number, ...parts: readonly (number | null)[]): readonly string[] => {
    const { text } = emitted(
      (b, _x, y) => {
        for (const part of parts) b.barrier(part);
        b.store(y, b.e.special('local', 0, threads), b.e.f32(1));
      },
      [threads, 1, 1],
    );
    return text.split('\n').flatMap((line) => (/^\s*bar\./.test(line) ? [line.trim().replace(/%r\d+/, 'N')] : []));
  };

  it.each([
    [256, [8, 32, null], ['bar.warp.sync 0xffffffff;', 'bar.warp.sync 0xffffffff;', 'bar.sync 0;']],
    [16, [4], ['bar.warp.sync 65535;']],
    [256, [64, 128], ['bar.sync N, 64;', 'bar.sync N, 128;']],
    // The last warp is half full.
    [48, [16], ['bar.sync 0;']],
    // Sixteen parts, and there are fifteen barriers.
    [1024, [64], ['bar.sync 0;']],
    [1024, [64, 128], ['bar.sync 0;', 'bar.sync N, 128;']],
    [64, [64], ['bar.sync 0;']],
  ] as const)('of a group of %d threads, for parts of %j: %j', (threads, parts, expected) => {
    expect(text(threads, ...parts)).toEqual(expected);
  });
});

it('parameters lie at multiples of their size', () => {
  const b = new ProgramBuilder();
  const y = b.e.param(0, 'float64', 'write', 4);
  const [flag, half, wide] = [b.e.scalar(0, 'bool'), b.e.scalar(1, 'float16'), b.e.scalar(2, 'float64')];
  b.store(y, 0, b.e.where(flag, b.e.cast(half, 'float64'), wide));
  const { params, scalars, parameterBytes } = emitPtx(b.build({ name: 'numbers' }), target);
  expect(params.map((p) => p.at)).toEqual([0]);
  expect(scalars).toEqual([
    { slot: 0, dtype: 'uint8', bytes: 1, at: 8 },
    { slot: 1, dtype: 'float32', bytes: 4, at: 12 },
    { slot: 2, dtype: 'float64', bytes: 8, at: 16 },
  ]);
  expect(parameterBytes).toBe(24);
});

describe('targets', () => {
  it.each([
    [75, '6.3', 75],
    [86, '7.0', 80],
    [86, '9.0', 86],
    [87, '8.0', 86],
    [103, '8.8', 100],
    [120, '8.10', 120],
    [120, '8.6', 100],
  ])('a card of %i under PTX %s is given sm_%i', (computeCapability, isa, named) => {
    expect(capabilityFor({ computeCapability, isa })).toBe(named);
  });

  it('what a card adds is used from there on: NaN in a maximum, integers over a warp, copies into group memory', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const at = e.special('local', 0, 32);
    const x = e.param(0, 'float32', 'read', 128);
    const [y, sums] = [e.param(1, 'float32', 'write', 32), e.param(2, 'int32', 'write', 32)];
    b.store(y, at, e.max(b.load(x, at), e.constant('float32', 1)));
    b.store(sums, at, b.here('SUBGROUP', 'int32', 1, [e.mul(at, at)], { op: 'sum' }));
    const program = b.build({ name: 'newer', params: [x, y, sums], group: [32, 1, 1] });
    const textFor = (computeCapability: number): string => emitPtx(program, { computeCapability, isa: '8.7' }).text;
    for (const capability of [80, 86, 89, 90, 100, 120]) {
      expect(textFor(capability)).toContain('max.NaN.f32');
      expect(textFor(capability)).toContain('redux.sync.add.s32');
      expect(textFor(capability)).not.toContain('shfl');
    }
    expect(textFor(75)).toContain('shfl.sync.bfly.b32');
    expect(textFor(75)).not.toMatch(/redux|\.NaN/);
    expect([75, 80, 90].map((capability) => ptxCaps(capability).copies)).toEqual([false, true, true]);
  });

  it('what is too old is refused', () => {
    expect(() => capabilityFor({ computeCapability: 70, isa: '7.0' })).toThrow(/70 is too old/);
    expect(() => capabilityFor({ computeCapability: 80, isa: '6.2' })).toThrow(/6\.2 is too old/);
  });
});

describe('refused', () => {
  it.each<readonly [string, (b: B, y: KNode) => void, RegExp]>([
    [
      'atomics of two bytes',
      (b) => b.atomic('add', b.shared('s', 'int16', 4), 0, b.e.constant('int16', 1)),
      /four bytes/,
    ],
    ['functions', (b, y) => b.store(y, 0, b.e.unary('SIN', b.load(y, 0))), /SIN on float32/],
    [
      'registers at a variable index',
      (b, y) => b.loop(2, (i) => b.store(b.reg('r', 'float32', 1, 2), i, b.load(y, i))),
      /constant index/,
    ],
  ])('%s', (_, write, why) => {
    const error = (() => {
      try {
        return emitted((b, __, y) => write(b, y));
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(PtxError);
    expect((error as PtxError).message).toMatch(why);
    expect((error as PtxError).node).not.toBeNull();
  });

  it('more parameters than a launch takes', () => {
    const b = new ProgramBuilder();
    const y = b.e.param(0, 'float64', 'write', 1);
    b.store(y, 0, b.e.scalar(511, 'float64'));
    const scalars = Array.from({ length: 512 }, () => 'float64' as const);
    expect(() => emitPtx(b.build({ name: 'many', scalars }), target)).toThrow(/4104 bytes of parameters/);
  });

  it('grids that a card does not take', () => {
    const b = new ProgramBuilder();
    b.store(b.e.param(0, 'float32', 'write', 1), 0, b.e.f32(0));
    expect(() => emitPtx(b.build({ name: 'wide', grid: [1, 65536, 1] }), target)).toThrow(/65536/);
  });
});

describe('registers of the program', () => {
  const cells = (write: (b: B, x: KNode, y: KNode, r: KNode) => void): string[] =>
    linesOf((b, x, y) => write(b, x, y, b.reg('r', 'float32', 2)));

  it('sums are added up in place', () => {
    const lines = linesOf((b, x, y) => {
      const sum = b.reg('sum', 'float32');
      b.store(sum, 0, b.e.f32(0));
      b.loop(5, (i) => b.store(sum, 0, b.e.add(b.load(sum, 0), b.load(x, i))));
      b.store(y, 0, b.load(sum, 0));
    });
    expect(lines).toContain('add.rn.f32 %f0, %f0, %f1;');
    expect(lines.filter((line) => line.startsWith('mov.f32'))).toEqual([
      'mov.f32 %f0, 0f00000000;',
      'mov.f32 %f3, %f0;',
    ]);
  });

  it('what is read later is kept', () => {
    const lines = linesOf((b, x, y) => {
      const r = b.reg('r', 'float32');
      b.store(r, 0, b.load(x, 0));
      const old = b.load(r, 0);
      b.store(r, 0, b.load(x, 1));
      b.store(y, 0, b.e.add(old, b.load(r, 0)));
    });
    expect(lines).toContain('mov.f32 %f2, %f0;');
    expect(lines).toContain('add.rn.f32 %f4, %f2, %f0;');
  });

  it('lanes that change places do so at once', () => {
    const lines = cells((b, x, y, r) => {
      b.store(r, 0, b.load(x, 0, 2));
      const old = b.load(r, 0, 2);
      b.store(r, 0, b.e.intern('VEC', 'float32', 2, [b.e.lane(old, 1), b.e.lane(old, 0)]));
      b.store(y, 0, b.load(r, 0, 2));
    });
    const moves = lines.filter((line) => line.startsWith('mov.f32'));
    expect(moves.slice(-4, -2)).toEqual(['mov.f32 %f0, %f5;', 'mov.f32 %f1, %f4;']);
  });
});

it('a quotient by a power of two is a product', () => {
  const quotient = (by: number): string =>
    linesOf((b, x, y) => b.store(y, 0, b.e.div(b.load(x, 0), b.e.f32(by)))).join();
  expect(quotient(8)).toContain('mul.rn.f32 %f1, %f0, 0f3E000000');
  expect(quotient(3)).toContain('div.rn.f32 %f1, %f0, 0f40400000');
});
