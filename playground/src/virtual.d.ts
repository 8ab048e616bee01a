declare module "virtual:glossary" {
  const entries: Record<string, { title: string; text: string }>;
  export default entries;
}
declare module "virtual:lessons" {
  const lessons: unknown[];
  export default lessons;
}
