/** Blocks and uses of random programs, compared with what counting openers and closing over operands gives. */
import { describe, expect, it } from 'vitest';
import { randomGroups } from '../testing/random-groups.ts';
import { randomProgram } from '../testing/random-program.ts';
import { Blocks, blocksOf } from './blocks.ts';
import { ProgramBuilder } from './builder/builder.ts';
import type { KNode, Program } from './ir.ts';
import { isStatement, usesOf } from './uses.ts';

const programs: readonly Program[] = Array.from({ length: 16 }, (_, seed) => [
  randomProgram(seed).program,
  randomGroups(seed).program,
]).flat();

const opens = (n: KNode): boolean => n.op === 'LOOP' || n.op === 'IF';
const ends = (n: KNode): boolean => n.op === 'ENDLOOP' || n.op === 'ENDIF';

/** Where the block that opens at `start` ends: up to there as many end as open. */
function endFrom(body: readonly KNode[], start: number): number {
  let depth = 0;
  return body.findIndex((n, i) => i >= start && (depth += Number(opens(n)) - Number(ends(n))) === 0);
}

describe('blocks', () => {
  it('are the nearest openers whose ends come later', () => {
    for (const program of programs) {
      const { body } = program;
      const { around, partner, wrong } = blocksOf(program);
      expect(wrong).toBe(null);
      const blocks = body.flatMap((n, at) => (opens(n) ? [{ at, end: endFrom(body, at) }] : []));
      for (const [at, n] of body.entries()) {
        const openers = blocks.filter((b) => b.at < at && at < b.end);
        expect(around[at]).toBe(openers.at(-1)?.at ?? -1);
        if (opens(n)) expect(partner[at]).toBe(endFrom(body, at));
        else if (ends(n)) expect(endFrom(body, partner[at] as number)).toBe(at);
        else expect(partner[at]).toBe(-1);
      }
    }
  });

  it('know where each node stands', () => {
    for (const program of programs) {
      for (const [at, n] of program.body.entries()) expect(blocksOf(program).positionOf(n)).toBe(at);
      expect(blocksOf(program).positionOf(new ProgramBuilder().e.i32(1))).toBe(undefined);
    }
  });

  it('are found once for a body', () => {
    const [program] = programs as [Program];
    expect(blocksOf({ ...program, name: 'other' })).toBe(blocksOf(program));
    expect(blocksOf({ ...program, body: [...program.body] })).not.toBe(blocksOf(program));
  });

  it('that do not fit are told', () => {
    const b = new ProgramBuilder();
    const y = b.e.param(0, 'int32', 'write', 4);
    b.loop(4, (i) => b.ifThen(b.e.lt(i, b.e.scalar(0, 'int32')), () => b.store(y, i, i)));
    const { body } = b.build({ name: 'some' });
    expect(new Blocks(body).wrong).toBe(null);
    expect(new Blocks(body.slice(0, -1)).wrong).toBe('1 blocks are not closed');
    expect(new Blocks(body.slice(0, -2)).wrong).toBe('2 blocks are not closed');
    expect(new Blocks([...body].reverse()).wrong).toBe('ENDLOOP without a beginning');
    const loop = body.find((n) => n.op === 'LOOP') as (typeof body)[number];
    const endif = body.find((n) => n.op === 'ENDIF') as (typeof body)[number];
    expect(new Blocks([loop, endif]).wrong).toBe('ENDIF ends LOOP');
  });
});

/** Uses by definition: needed is what is a statement or an operand of what is needed. */
function slowUses(body: readonly KNode[], operands: (n: KNode) => readonly KNode[]): (n: KNode) => number[] {
  const needed = new Set(body.filter(isStatement));
  for (let before = -1; before < needed.size; ) {
    before = needed.size;
    for (const n of body) if (needed.has(n)) for (const s of operands(n)) needed.add(s);
  }
  const users = body.flatMap((n, at) => (needed.has(n) ? operands(n).map((s) => [s, at] as const) : []));
  return (n) => users.filter(([s]) => s === n).map(([, at]) => at);
}

describe('uses', () => {
  it.each([
    ['sources', (n: KNode): readonly KNode[] => n.src],
    ['some of the sources, twice', (n: KNode): readonly KNode[] => [...n.src.slice(1), ...n.src.slice(1, 2)]],
    ['sources of sources', (n: KNode): readonly KNode[] => n.src.flatMap((s) => (s.op === 'ADD' ? s.src : [s]))],
  ])('of %s are counted where something needs them', (_, operands) => {
    for (const { body } of programs) {
      const [uses, slow] = [usesOf(body, operands), slowUses(body, operands)];
      for (const n of body) {
        const users = slow(n);
        expect(uses.countOf(n)).toBe(users.length);
        expect(uses.onlyUserOf(n)).toBe(users.length === 1 ? users[0] : -1);
      }
    }
  });

  it('are those of statements and of what they need', () => {
    const b = new ProgramBuilder();
    const y = b.e.param(0, 'int32', 'write', 4);
    b.loop(4, (i) => b.store(y, i, b.e.mul(i, i)));
    const { body } = b.build({ name: 'squares' });
    const uses = usesOf(body, (n) => n.src);
    expect(body.map((n) => [n.op, uses.countOf(n)])).toEqual([
      ['CONST', 1],
      ['PARAM', 1],
      ['LOOP', 3],
      ['MUL', 1],
      ['STORE', 0],
      ['ENDLOOP', 0],
    ]);
    expect(uses.onlyUserOf(body[3] as KNode)).toBe(4);
  });
});
