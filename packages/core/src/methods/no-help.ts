/** What `#help` is in bundles for browsers: nothing. */

export function putHelp(_prototype: object): void {}

export function checkCount(_name: string, _operation: unknown, _rest: readonly unknown[]): void {}
