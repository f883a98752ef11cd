/**
 * @version 1.0.0
 * @tool_type javascript
 * @executor_id node_runtime
 * @category evening
 * @description Write a toast, with the model of the client
 * @parameters [{name: name, type: string, required: true, description: Whom to toast.}]
 */

const name = process.argv[process.argv.indexOf('--name') + 1];

async function main() {
  rye.progress(1, 2, 'thinking');
  try {
    const answer = await rye.sample(`A toast to ${name}, in ten words.`, { maxTokens: 60 });
    console.log(answer.content.text);
  } catch (refusal) {
    if (refusal.type !== 'CAPABILITY_MISSING') throw refusal;
    console.log(`To ${name}!`);
  }
}

main();
