declare module "*.html" {
  const text: string;
  export default text;
}
declare module "*.jsonl" {
  const text: string;
  export default text;
}
declare module "*.cff" {
  const text: string;
  export default text;
}
