/** Frames of x86-64 larger than a page: Windows gives a stack its next page only where the one above was touched. */
import { ProgramBuilder } from '@polygrad/core/kernel';
import { expect, it } from 'vitest';
import { emitMachineCode } from '../emit.ts';

const lanes = 16;

/** Where code with so many vectors alive at once touches its stack before it takes the frame, and the bytes of that. */
function frameOf(count: number): { readonly touched: readonly number[]; readonly bytes: number } {
  const b = new ProgramBuilder();
  const { e } = b;
  const params = [e.param(0, 'float32', 'read', count * lanes), e.param(1, 'float32', 'write', lanes)] as const;
  const loaded = Array.from({ length: count }, (_, i) => b.load(params[0], e.i32(i * lanes), lanes));
  const sum = loaded.reduce((a, v) => e.add(a, v));
  b.store(
    params[1],
    e.i32(0),
    loaded.reduceRight((a, v) => e.sub(e.mul(a, a), v), sum),
  );
  const target = { isa: 'x64-v4', vectorBytes: 64, sharedBytes: 65536, scalarOffset: 8192 } as const;
  const { text } = emitMachineCode(b.build({ name: 'values', params }), target, true);
  const [before, bytes] = /^([\s\S]*?)sub rsp,(\w+)/.exec(text)!.slice(1);
  const touched = [...before!.matchAll(/\[rsp-(\w+)\]/g)].map(([, at]) => Number(at));
  return { touched, bytes: Number(bytes) };
}

it('small frames touch nothing before', () => expect(frameOf(20).touched).toEqual([]));

it.each([100, 200, 1000])('%i vectors: every page down to the end of the frame', (count) => {
  const { touched, bytes } = frameOf(count);
  expect(bytes).toBeGreaterThan(4096);
  expect(touched).toEqual(touched.map((_, i) => 4096 * (i + 1)));
  // Less than a page is left, with what aligning the frame takes.
  expect(bytes + 64 - touched.at(-1)!).toBeLessThanOrEqual(4096);
});
