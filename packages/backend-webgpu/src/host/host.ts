/** What the engine needs from its surroundings; `browser.ts` and `node.ts` of this folder provide it. */

export interface Host {
  /** The entry to WebGPU, or why there is none, in words for a person. */
  readonly gpu: () => Promise<GPU | string>;
  /**
   * Calls `start`, which asks something of WebGPU that is answered later. Every such call goes through here, because on
   * Node somebody has to look for the answers.
   */
  readonly paced: <T>(start: () => T) => T;
  /** `paced` around the request for an adapter, with what keeps drivers from complaining of a machine without a display. */
  readonly asking: <T>(start: () => T) => T;
  /** Bytes of the machine's memory, if known. Software adapters compute there. */
  readonly memoryBytes: () => number | undefined;
}
