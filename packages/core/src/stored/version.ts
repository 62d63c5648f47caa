/** The version of the library, as plans know it: that of the packages, which a test compares. */
export const version = '0.0.0';
