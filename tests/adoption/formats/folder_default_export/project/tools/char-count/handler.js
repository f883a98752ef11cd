const execute = async ({ args }) => ({ ok: true, data: { count: [...args.text].length } });

export default execute;
