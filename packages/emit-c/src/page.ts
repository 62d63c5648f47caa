/** What is written of a kernel: lines with the nodes they came from, names that are new, functions and first lines that occur once. */
import type { KNode } from '@polygrad/core/kernel';

export interface Line {
  readonly text: string;
  readonly node: KNode | null;
}

export class Page {
  /** Functions before the kernel. */
  readonly helpers: string[] = [];
  /** First lines of the kernel. */
  readonly prologues: string[] = [];
  readonly body: Line[] = [];
  /** The node that is being printed. */
  node: KNode | null = null;
  readonly #known = new Set<string>();
  readonly #counts: Record<string, number> = {};
  #indent = 1;

  /** A name that no other value has. */
  fresh(prefix: string): string {
    const count = this.#counts[prefix] ?? 0;
    this.#counts[prefix] = count + 1;
    return `${prefix}${count}`;
  }

  line(text: string): void {
    this.body.push({ text: '  '.repeat(this.#indent) + text, node: this.node });
  }

  /** A line that opens a block. */
  open(text: string): void {
    this.line(text);
    this.inner();
  }

  /** Lines from here on belong to a block that is open. */
  inner(): void {
    this.#indent++;
  }

  close(): void {
    this.#indent--;
    this.line('}');
  }

  helper(title: string, text: () => string): string {
    return this.#once(this.helpers, title, text);
  }

  prologue(title: string, line: () => string): string {
    return this.#once(this.prologues, title, line);
  }

  #once(list: string[], title: string, text: () => string): string {
    if (!this.#known.has(title)) {
      this.#known.add(title);
      list.push(text());
    }
    return title;
  }
}
