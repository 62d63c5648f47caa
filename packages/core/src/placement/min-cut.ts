/**
 * The cheapest way to divide work between two engines: the minimum cut of a flow network.
 *
 * Source: H. S. Stone, "Multiprocessor Scheduling with the Aid of Network Flow Algorithms", IEEE Transactions on Software Engineering 3, 1977.
 * The flow is found by Dinic's algorithm (1970), iteratively.
 */

/** A network of edges with capacities. Vertex 0 is the source, vertex 1 the sink. */
export class FlowNetwork {
  readonly #to: number[] = [];
  readonly #left: number[] = [];
  readonly #edges: number[][] = [[], []];

  /** Adds a vertex and returns its number. */
  vertex(): number {
    return this.#edges.push([]) - 1;
  }

  /** Adds an edge from one vertex to another. */
  edge(from: number, to: number, capacity: number): void {
    this.#edges[from]!.push(this.#to.length);
    this.#to.push(to);
    this.#left.push(capacity);
    this.#edges[to]!.push(this.#to.length);
    this.#to.push(from);
    this.#left.push(0);
  }

  /** For each vertex, whether it is on the source's side of a minimum cut. */
  cut(): readonly boolean[] {
    const count = this.#edges.length;
    const least = 1e-12;
    for (;;) {
      const level = this.#levels(least);
      if (level[1]! < 0) return Array.from({ length: count }, (_, i) => level[i]! >= 0);
      const at = new Int32Array(count);
      while (this.#augment(level, at, least));
    }
  }

  /** Distances from the source along edges with something left; -1 out of reach. */
  #levels(least: number): Int32Array {
    const level = new Int32Array(this.#edges.length).fill(-1);
    level[0] = 0;
    const queue = [0];
    for (let i = 0; i < queue.length; i++) {
      const from = queue[i]!;
      for (const e of this.#edges[from]!) {
        const to = this.#to[e]!;
        if (level[to]! >= 0 || this.#left[e]! <= least) continue;
        level[to] = level[from]! + 1;
        queue.push(to);
      }
    }
    return level;
  }

  /** Sends flow along one shortest path; false if there is none left. */
  #augment(level: Int32Array, at: Int32Array, least: number): boolean {
    const path: number[] = [];
    let vertex = 0;
    while (vertex !== 1) {
      const edges = this.#edges[vertex]!;
      let next = -1;
      for (; at[vertex]! < edges.length; at[vertex]!++) {
        const e = edges[at[vertex]!]!;
        if (this.#left[e]! > least && level[this.#to[e]!] === level[vertex]! + 1) {
          next = e;
          break;
        }
      }
      if (next >= 0) {
        path.push(next);
        vertex = this.#to[next]!;
        continue;
      }
      const back = path.pop();
      if (back === undefined) return false;
      vertex = this.#to[back ^ 1]!;
      at[vertex]!++;
    }
    let flow = Number.POSITIVE_INFINITY;
    for (const e of path) flow = Math.min(flow, this.#left[e]!);
    for (const e of path) {
      this.#left[e]! -= flow;
      this.#left[e ^ 1]! += flow;
    }
    return true;
  }
}
