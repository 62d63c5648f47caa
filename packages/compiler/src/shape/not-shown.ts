/** What `#shown-as` is in bundles for browsers: nothing, so that bundlers leave out what would be shown. */

/*@__NO_SIDE_EFFECTS__*/
export function showAs<T extends object>(
  target: T,
  _outline: (self: T) => unknown,
  _seen?: string | ((self: T) => string),
): T {
  return target;
}

/*@__NO_SIDE_EFFECTS__*/
export function refuseNames<T extends object>(
  _kind: { readonly prototype: T },
  _names: Readonly<Record<string, string>>,
  _error: (name: string, instead: string, self: T) => Error,
): void {}

/*@__NO_SIDE_EFFECTS__*/
export function meantOf(_op: string): string {
  return '';
}

/*@__NO_SIDE_EFFECTS__*/
export function instead(_name: string, _known: readonly string[]): string {
  return '; k';
}

/*@__NO_SIDE_EFFECTS__*/
export function mustBe(_value: unknown): string {
  return '; must be';
}

/*@__NO_SIDE_EFFECTS__*/
export function lacking(_engine: object): string {
  return '';
}

/** Whether errors say which rule the library's own code breaks, and what a wrong name may have meant. Constant, so that bundlers leave texts out. */
export const told: boolean = false;
