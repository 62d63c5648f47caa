/** What `#missing-methods` is in bundles for browsers: nothing. */

export function putMissing(_prototype: object): void {}
