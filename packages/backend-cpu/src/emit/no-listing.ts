/** What `#listing` is in bundles for browsers: how long the program is, and where its text is to be had. */
import type { Program } from '@polygrad/core/kernel/ir';

export function listing({ body }: Program): string {
  return `its ${body.length} statements are listed in Node, and in pages bundled with the condition 'development'`;
}

/** Whether errors say which rule of the emitter a program breaks. Constant, so that bundlers leave texts out. */
export const told: boolean = false;
