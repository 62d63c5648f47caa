/** What `#processes` is in pages: there are none. */
import type { Processes } from './apart.ts';

export const processes: Processes | null = null;
