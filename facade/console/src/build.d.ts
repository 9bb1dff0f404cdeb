// Constants that build.mjs replaces.

/** Path of the style sheet that mathematics needs. */
declare const MATHS_STYLES: string;
