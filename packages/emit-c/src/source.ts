/** Lines put together, and which node each came from. */
import type { KNode } from '@polygrad/core/kernel';

interface Line {
  readonly text: string;
  readonly node: KNode | null;
}

/** The source of a kernel: declarations, the first lines of its body, the body. */
export function assemble(
  head: readonly string[],
  first: readonly string[],
  body: readonly Line[],
): { readonly source: string; readonly lines: readonly (KNode | null)[] } {
  const before = [...head, ...first.map((text) => `  ${text}`)].flatMap((text) => text.split('\n'));
  const source = `${[...before, ...body.map((l) => l.text), '}'].join('\n')}\n`;
  return { source, lines: [...before.map(() => null), ...body.map((l) => l.node), null] };
}
