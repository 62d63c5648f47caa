/** What `#help` is in bundles for browsers: nothing. */

export function putHelp(_prototype: object): void {}
