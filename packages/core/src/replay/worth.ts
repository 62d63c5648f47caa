/**
 * Whether recording pays. Recording a call takes longer than the call, and pays only where calls with arguments of the same form follow. So calls are recorded
 * on credit: recordings cost, replays earn.
 *
 * A form of arguments that is new is recorded at once while forms come again, otherwise when it comes for the second time. Without credit only a few calls are recorded, to
 * find out whether that pays again.
 */

/** New forms that are recorded at once, beyond one for each form that comes again. */
const mostNovel = 16;
/** Calls that may be recorded without a replay, and what a replay earns. */
const mostCredit = 256;
const perReplay = 2;
/** Without credit one call in so many is recorded. */
const seldom = 32;
/** Forms that are remembered without a recording. */
const mostSeen = 4096;
/** More calls than replays, from which on compiling is said to be in vain. */
const inVain = 256;

export class Worth {
  #novel = mostNovel;
  #credit = mostCredit;
  #left = 0;
  #unreplayed = 0;
  /** Numbers of forms that came without being recorded. */
  readonly #seen = new Set<number>();

  /** A call was replayed. */
  replayed(): void {
    this.#credit = Math.min(this.#credit + perReplay, mostCredit);
    this.#repeats();
    if (this.#unreplayed > 0) this.#unreplayed--;
  }

  #repeats(): void {
    this.#novel = Math.min(this.#novel + 1, mostNovel);
  }

  /** True if a call is to be recorded whose form is not kept. */
  isNew(hash: number): boolean {
    const again = this.#seen.delete(hash);
    if (again) this.#repeats();
    if ((again || this.#novel > 0) && this.records()) {
      if (!again) this.#novel--;
      return true;
    }
    this.#seen.add(hash);
    if (this.#seen.size > mostSeen) for (const oldest of this.#seen) if (this.#seen.delete(oldest)) break;
    return false;
  }

  /** True if a call is to be recorded that no earlier one vouches for. */
  records(): boolean {
    if (this.#credit === 0 && ++this.#left % seldom !== 0) return false;
    if (this.#credit > 0) this.#credit--;
    return true;
  }

  /** A call of such a form ran without being recorded. True when so many did that compiling is in vain. */
  ran(): boolean {
    return ++this.#unreplayed >= inVain;
  }
}
