declare module "virtual:lessons" {
  const lessons: unknown[];
  export default lessons;
}
