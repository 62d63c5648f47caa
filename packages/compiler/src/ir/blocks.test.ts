/** Blocks and uses of random programs, compared with what counting openers and closing over operands gives. */
import { describe, expect, it } from 'vitest';
import { randomGroups, randomProgram } from '@polygrad/testing';
import { endsOf } from './block-ends.ts';
import { blocksOf, usesOf } from './uses.ts';
import { ProgramBuilder } from './builder/builder.ts';
import type { KNode, Program, ProgramNode } from './ir.ts';

const programs: readonly Program[] = Array.from({ length: 16 }, (_, seed) => [
  randomProgram(seed).program,
  randomGroups(seed).program,
]).flat();

const opens = (n: KNode): boolean => n.op === 'LOOP' || n.op === 'IF';
const closes = (n: KNode): boolean => n.op === 'ENDLOOP' || n.op === 'ENDIF';

/** Where the block that opens at `start` ends: up to there as many end as open. */
function endFrom(body: readonly KNode[], start: number): number {
  let depth = 0;
  return body.findIndex((n, i) => i >= start && (depth += Number(opens(n)) - Number(closes(n))) === 0);
}

describe('blocks', () => {
  it('are the nearest openers whose ends come later', () => {
    for (const program of programs) {
      const { body } = program;
      const [around, ends] = [blocksOf(program), endsOf(program)];
      const blocks = body.flatMap((n, at) => (opens(n) ? [{ at, end: endFrom(body, at) }] : []));
      for (const [at, n] of body.entries()) {
        const openers = blocks.filter((b) => b.at < at && at <= b.end);
        expect(around[at]).toBe(openers.at(-1)?.at ?? -1);
        if (opens(n)) expect(ends[at]).toBe(endFrom(body, at));
      }
    }
  });

  it('are found once for a body', () => {
    const [program] = programs as [Program];
    expect(blocksOf({ ...program, name: 'other' })).toBe(blocksOf(program));
    expect(blocksOf({ ...program, body: [...program.body] })).not.toBe(blocksOf(program));
  });

  it('that do not fit are refused', () => {
    const b = new ProgramBuilder();
    const y = b.e.param(0, 'int32', 'write', 4);
    b.loop(4, (i) => b.ifThen(b.e.lt(i, b.e.scalar(0, 'int32')), () => b.store(y, i, i)));
    const program = b.build({ name: 'some' });
    const { body } = program;
    const [loop, endif] = ['LOOP', 'ENDIF'].map((op) => body.find((n) => n.op === op)) as [ProgramNode, ProgramNode];
    expect(blocksOf(program).length).toBe(body.length);
    for (const wrong of [body.slice(0, -1), [...body].reverse(), [endif], [endif, loop]])
      expect(() => blocksOf({ ...program, body: wrong })).toThrow('[kernel] unpaired blocks');
  });
});

/** Uses by definition: needed is what is a statement or an operand of what is needed. */
function slowUses(body: readonly KNode[], operands: (n: KNode) => readonly KNode[]): (n: KNode) => number[] {
  const needed = new Set<KNode>(body.filter((n) => n.dtype === 'void' || n.op === 'LOOP'));
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
    ['sources of sources', (n: KNode): readonly KNode[] => n.src.flatMap<KNode>((s) => (s.op === 'ADD' ? s.src : [s]))],
  ])('of %s are counted where something needs them', (_, operands) => {
    for (const { body } of programs) {
      const [uses, slow] = [usesOf(body, operands), slowUses(body, operands)];
      for (const n of body) {
        const users = slow(n);
        expect(uses.get(n)?.count ?? 0).toBe(users.length);
        if (users.length === 1) expect(uses.get(n)?.at).toBe(users[0]);
      }
    }
  });

  it('are those of statements and of what they need', () => {
    const b = new ProgramBuilder();
    const y = b.e.param(0, 'int32', 'write', 4);
    b.loop(4, (i) => b.store(y, i, b.e.mul(i, i)));
    const { body } = b.build({ name: 'squares' });
    const uses = usesOf(body, (n) => n.src);
    expect(body.map((n) => [n.op, uses.get(n)?.count ?? 0])).toEqual([
      ['CONST', 1],
      ['PARAM', 1],
      ['LOOP', 3],
      ['MUL', 1],
      ['STORE', 0],
      ['ENDLOOP', 0],
    ]);
    expect(uses.get(body[3]!)?.at).toBe(4);
  });
});
