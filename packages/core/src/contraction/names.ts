/** Names of the choices for a contraction that are no tile of threads. */
export const byTiles = 'tiles';
export const byLibrary = 'library';
