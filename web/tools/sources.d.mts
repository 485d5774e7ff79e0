export function sumOfSources(root: string): string;
