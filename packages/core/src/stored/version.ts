/** The library's version in plans: that of the packages, which a test compares. */
export const version = '0.0.0';
